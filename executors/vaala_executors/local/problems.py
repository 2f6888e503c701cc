"""The one place where an error of the system becomes one of ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from vaala_executors.errors import (
    FileDenied,
    FileExists,
    FileFailed,
    FileFull,
    FileMissing,
    FileProblem,
    NotADirectory,
    NotAFile,
)

KINDS: dict[int, tuple[type[FileProblem], str]] = {
    errno.ENOENT: (FileMissing, "does not exist"),
    errno.EEXIST: (FileExists, "exists already"),
    errno.EISDIR: (NotAFile, "is a directory"),
    errno.ENXIO: (NotAFile, "is a socket or a device without a driver"),
    errno.ENOTDIR: (NotADirectory, "has a component that is not a directory"),
    errno.EACCES: (FileDenied, "may not be accessed: permission denied"),
    errno.EPERM: (FileDenied, "may not be changed: operation not permitted"),
    errno.EROFS: (FileDenied, "is on a read-only file system"),
    errno.ENOSPC: (FileFull, "was not written: no space left on the device"),
    errno.EDQUOT: (FileFull, "was not written: the disk quota is used up"),
    errno.EFBIG: (FileFull, "was not written: larger than the system allows"),
    errno.ENOTEMPTY: (FileFailed, "is a directory that is not empty"),
    errno.ELOOP: (FileFailed, "is, or goes through, a symbolic link that leads nowhere"),
    errno.ENAMETOOLONG: (FileFailed, "is too long a name for this system"),
    errno.EXDEV: (FileFailed, "cannot be renamed to another file system: copy and remove it"),
}


@contextmanager
def naming(path: str) -> Generator[None]:
    """Map errors of the system; their text names ``path`` as the caller gave it."""
    try:
        yield
    except OSError as error:
        raise problem(path, error) from error
    except ValueError as error:  # a NUL, or a character that no file name can have
        raise FileFailed(f"{path!r} is no possible file name: {error}") from error


def problem(path: str, error: OSError) -> FileProblem:
    kind, text = KINDS.get(error.errno or 0, (FileFailed, ""))
    return kind(f"{path!r} {text or 'failed: ' + os.strerror(error.errno or 0)}")
