"""`Files`: the narrow seam to the operating system, so that faults need no patching.

All calls are plain blocking calls that raise ``OSError`` as the system does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from abc import ABC, abstractmethod

from msgspec import Struct

if sys.platform == "darwin":
    import fcntl

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


class FileState(Struct, frozen=True):
    size: int
    links: int
    """0: the file has been removed, what is written to it is lost."""


class DirectoryEntry(Struct, frozen=True):
    name: str
    is_directory: bool


class Files(ABC):
    """What storage asks of a file system. Handles are small integers."""

    blocking: bool = True
    """Whether a call may wait for a device. Files in memory say False; then calls run in the
    caller's thread, so that a simulation under a mock clock is deterministic."""

    @abstractmethod
    def open_read(self, path: str) -> int: ...

    @abstractmethod
    def open_append(self, path: str, *, create: bool) -> int:
        """Open for writing at the end, whatever its length will be then."""

    @abstractmethod
    def open_new(self, path: str) -> int:
        """Make a file that must not be there yet, for writing at its end."""

    @abstractmethod
    def close(self, handle: int) -> None: ...

    @abstractmethod
    def state(self, handle: int) -> FileState: ...

    @abstractmethod
    def read(self, handle: int, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes; nothing at the end."""

    @abstractmethod
    def write(self, handle: int, data: bytes) -> int:
        """Write at the end and return how many bytes were taken."""

    @abstractmethod
    def truncate(self, handle: int, size: int) -> None: ...

    @abstractmethod
    def sync_data(self, handle: int) -> None:
        """Return when the file's bytes and its length are on the device."""

    @abstractmethod
    def sync_directory(self, path: str) -> None:
        """Return when the names in the directory are on the device."""

    @abstractmethod
    def make_directory(self, path: str) -> None: ...

    @abstractmethod
    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries in no order; a symbolic link is no directory."""

    @abstractmethod
    def rename(self, old: str, new: str) -> None: ...

    @abstractmethod
    def link(self, old: str, new: str) -> None:
        """Give a file a second name, which must not be there yet."""

    @abstractmethod
    def remove(self, path: str) -> None: ...

    @abstractmethod
    def remove_directory(self, path: str) -> None: ...


class SystemFiles(Files):
    """The real file system. Files are 0600 and directories 0700, whatever the umask."""

    def open_read(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def open_append(self, path: str, *, create: bool) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        if not create:
            return os.open(path, flags)
        return self._made(os.open(path, flags | os.O_CREAT, FILE_MODE))

    def open_new(self, path: str) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL
        return self._made(os.open(path, flags, FILE_MODE))

    def _made(self, handle: int) -> int:
        if stat.S_IMODE(os.fstat(handle).st_mode) != FILE_MODE:
            try:
                os.fchmod(handle, FILE_MODE)
            except OSError:
                os.close(handle)
                raise
        return handle

    def close(self, handle: int) -> None:
        os.close(handle)

    def state(self, handle: int) -> FileState:
        found = os.fstat(handle)
        return FileState(found.st_size, found.st_nlink)

    def read(self, handle: int, offset: int, length: int) -> bytes:
        return os.pread(handle, length, offset)

    def write(self, handle: int, data: bytes) -> int:
        return os.write(handle, data)

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    if sys.platform == "darwin":

        def sync_data(self, handle: int) -> None:
            # fsync(2) there leaves the bytes in the drive's cache (Apple's manual page); file
            # systems that do not know F_FULLFSYNC (some network ones) say so.
            try:
                fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                    raise
                os.fsync(handle)

    else:

        def sync_data(self, handle: int) -> None:
            os.fdatasync(handle)

    def sync_directory(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        except OSError as error:
            # fsync(2): EINVAL means that this kind of file cannot be synced at all.
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(handle)

    def make_directory(self, path: str) -> None:
        os.mkdir(path, DIRECTORY_MODE)
        if stat.S_IMODE(os.lstat(path).st_mode) != DIRECTORY_MODE:
            os.chmod(path, DIRECTORY_MODE)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        with os.scandir(path) as entries:
            return [
                DirectoryEntry(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries
            ]

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def link(self, old: str, new: str) -> None:
        os.link(old, new, follow_symlinks=False)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)


SYSTEM_FILES = SystemFiles()
"""It has no state, so one is enough."""


def make_directories(files: Files, path: str) -> None:
    """Make a directory and those above it, each durable in its parent."""
    try:
        files.make_directory(path)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_directories(files, os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            files.make_directory(path)
    files.sync_directory(os.path.dirname(path))


def remove_tree(files: Files, path: str) -> None:
    """Remove a directory with everything below; no error for what is gone already."""
    try:
        entries = files.list_directory(path)
    except FileNotFoundError:
        return
    for entry in entries:
        below = f"{path}/{entry.name}"
        if entry.is_directory:
            remove_tree(files, below)
        else:
            with contextlib.suppress(FileNotFoundError):
                files.remove(below)
    with contextlib.suppress(FileNotFoundError):
        files.remove_directory(path)
