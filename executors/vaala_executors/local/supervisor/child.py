"""From fork to exec: what the child does to become the command."""

from __future__ import annotations

import errno
import os
from struct import Struct

from .wire import (
    FLAG_PTY,
    FLAG_STDIN,
    STAGE_DIRECTORY,
    STAGE_PROGRAM,
    STAGE_TERMINAL,
    Request,
)

FAILURE = Struct("!ii")
"""Stage and errno, written to the status pipe; exec closes the pipe without a word."""

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"


def become(request: Request, output: int, stdin: int, status: int) -> None:
    """Never returns: either the process is the command, or it told why not and is gone.

    ``stdin`` is the pipe's read end, or the null device where nobody will write. With a PTY
    ``output`` is its terminal side and standard input too, if somebody will write.
    """
    stage = STAGE_TERMINAL
    try:
        if request.flags & FLAG_PTY:
            os.login_tty(output)
            if not request.flags & FLAG_STDIN:
                os.dup2(stdin, 0)
        else:
            os.setsid()
            os.dup2(stdin, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
        stage = STAGE_DIRECTORY
        os.chdir(request.cwd)
        stage = STAGE_PROGRAM
        _execute(request)
    except OSError as error:
        os.write(status, FAILURE.pack(stage, error.errno or 0))
    finally:
        os._exit(127)


def _execute(request: Request) -> None:
    """Exec along PATH as execvp(3) does. `os.execvpe` imports a module: 4 ms for each command."""
    environ = dict(entry.split(b"=", 1) for entry in request.env)
    program = request.argv[0]
    if b"/" in program:
        os.execve(program, request.argv, environ)
    told = errno.ENOENT
    for directory in environ.get(b"PATH", DEFAULT_PATH).split(b":"):
        try:
            os.execve(os.path.join(directory or b".", program), request.argv, environ)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                told = error.errno or told  # "not executable" says more than "not found"
    raise OSError(told, "")
