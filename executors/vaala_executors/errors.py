"""What can go wrong on an executor: expected answers that a tool turns into text for the model.

ExecutorError
+-- FileProblem            the message names the path as the caller gave it
|   +-- FileMissing
|   +-- FileExists
|   +-- NotAFile           a directory, device, socket or FIFO where a file is needed
|   +-- NotADirectory
|   +-- OutsideWorkspace   the real path lies outside the workspace's roots
|   +-- PathMoved          the path leads to another place than when it was looked at
|   +-- FileDenied         the system refuses access
|   +-- FileTooLarge
|   +-- FileFull           no space; the old content is in place
|   +-- FileFailed         any other error of the system, named in the text
+-- BadPattern             a search's regular expression or glob is not valid
+-- StartFailed            a process could not be started (no such directory, no such program)
+-- ExecutorLost           the machine cannot be reached; what was running is unknown
"""

from __future__ import annotations


class ExecutorError(Exception):
    """The root."""


class FileProblem(ExecutorError):
    pass


class FileMissing(FileProblem):
    pass


class FileExists(FileProblem):
    pass


class NotAFile(FileProblem):
    pass


class NotADirectory(FileProblem):
    pass


class OutsideWorkspace(FileProblem):
    pass


class PathMoved(FileProblem):
    pass


class FileDenied(FileProblem):
    pass


class FileTooLarge(FileProblem):
    pass


class FileFull(FileProblem):
    pass


class FileFailed(FileProblem):
    pass


class StartFailed(ExecutorError):
    pass


class ExecutorLost(ExecutorError):
    pass


class BadPattern(ExecutorError):
    pass
