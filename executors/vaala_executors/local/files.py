"""Reading files and directories, and small changes of names. All of it blocks: for a thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal

from vaala_executors.errors import (
    FileDenied,
    FileExists,
    FileProblem,
    FileTooLarge,
    NotAFile,
)
from vaala_executors.limits import IO_BYTES, LIST_ENTRIES_MAX, READ_BYTES_MAX
from vaala_executors.local.problems import naming
from vaala_executors.local.resolver import parent_of, sync_directory
from vaala_executors.workspace import DirEntry, FileStat, Place, WholeFile

READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
OFFSET_MAX = 1 << 62
"""Beyond every file, and what the system call can take."""
LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link that leads in a circle, or became one just now",
}


def read_file(
    place: Place, offset: int, length: int | None, check_cancelled: Callable[[], None]
) -> bytes:
    """Return up to ``length`` bytes from ``offset``; without it all, or `FileTooLarge`."""
    offset = min(offset, OFFSET_MAX)
    with _opened(place) as (descriptor, _):
        if length is not None:
            return _read(descriptor, offset, min(length, READ_BYTES_MAX), check_cancelled)
        # A size would not do: files in /proc say 0, and a log may grow while it is read.
        data = _read(descriptor, offset, READ_BYTES_MAX + 1, check_cancelled)
    if len(data) > READ_BYTES_MAX:
        raise FileTooLarge(
            f"{place.path!r} is larger than {READ_BYTES_MAX} bytes: read parts, by offset and"
            " length"
        )
    return data


def read_whole(place: Place, bytes_max: int, check_cancelled: Callable[[], None]) -> WholeFile:
    """Return what a file is and, unless it is larger than ``bytes_max``, all of it."""
    with _opened(place) as (descriptor, status):
        if status.st_size > bytes_max:
            return WholeFile(file_stat(status), None)
        data = _read(descriptor, 0, bytes_max + 1, check_cancelled)
    return WholeFile(file_stat(status), data if len(data) <= bytes_max else None)


@contextmanager
def _opened(place: Place) -> Generator[tuple[int, os.stat_result]]:
    """Open a regular file; yield its descriptor and what it is.

    The kind is looked at before the file is opened, since opening a device may do something,
    and again on the open file.
    """
    with naming(place.path), parent_of(place) as (handle, name):
        require_file(place.path, os.stat(name, dir_fd=handle, follow_symlinks=False))
        descriptor = os.open(name, READ_FLAGS, dir_fd=handle)
        try:
            status = os.fstat(descriptor)
            require_file(place.path, status)
            yield descriptor, status
        finally:
            os.close(descriptor)


def _read(descriptor: int, offset: int, wanted: int, check_cancelled: Callable[[], None]) -> bytes:
    """Return ``wanted`` bytes, fewer at the end of the file."""
    pieces: list[bytes] = []
    while wanted > 0 and (piece := os.pread(descriptor, min(wanted, IO_BYTES), offset)):
        check_cancelled()
        pieces.append(piece)
        offset += len(piece)
        wanted -= len(piece)
    return b"".join(pieces)


def require_file(path: str, status: os.stat_result) -> None:
    """Raise `NotAFile` for all but a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "of an unknown kind")
        raise NotAFile(f"{path!r} is {kind}, not a file")


def stat_file(place: Place) -> FileStat:
    with naming(place.path), parent_of(place) as (handle, name):
        return file_stat(os.stat(name, dir_fd=handle, follow_symlinks=False))


def stat_if_there(place: Place) -> FileStat | None:
    """Return what is at a place; None for nothing, or for what may not be looked at."""
    try:
        return stat_file(place)
    except FileProblem:
        return None


def file_stat(status: os.stat_result) -> FileStat:
    kind: Literal["file", "directory", "other"] = "other"
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "directory"
    return FileStat(
        kind=kind,
        size=status.st_size,
        mode=stat.S_IMODE(status.st_mode),
        mtime_ns=status.st_mtime_ns,
    )


def list_directory(place: Place, check_cancelled: Callable[[], None]) -> Sequence[DirEntry]:
    """Return the entries sorted by name; raises `FileTooLarge` over a limit."""
    with naming(place.path), parent_of(place) as (handle, name):
        descriptor = os.open(name, LIST_FLAGS, dir_fd=handle)
        try:
            entries: list[DirEntry] = []
            with os.scandir(descriptor) as found:
                for entry in found:
                    check_cancelled()
                    entries.append(_entry(entry))
                    if len(entries) > LIST_ENTRIES_MAX:
                        raise FileTooLarge(
                            f"{place.path!r} has more than {LIST_ENTRIES_MAX} entries: search it"
                        )
        finally:
            os.close(descriptor)
    return sorted(entries, key=lambda entry: entry.name)


def _entry(entry: os.DirEntry[str]) -> DirEntry:
    if entry.is_symlink():
        return DirEntry(entry.name, "link", 0)
    if entry.is_dir(follow_symlinks=False):
        return DirEntry(entry.name, "directory", 0)
    if not entry.is_file(follow_symlinks=False):
        return DirEntry(entry.name, "other", 0)
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        size = 0  # removed since it was listed
    return DirEntry(entry.name, "file", size)


def remove(place: Place) -> None:
    """Remove a file, a link or an empty directory; durable on return."""
    _refuse_root(place)
    with naming(place.path), parent_of(place) as (handle, name):
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            os.rmdir(name, dir_fd=handle)
        else:
            os.unlink(name, dir_fd=handle)
        sync_directory(handle)


def rename(source: Place, target: Place) -> None:
    """Rename, making the target's parents; `FileExists` when it is there; durable on return."""
    _refuse_root(source)
    with naming(source.path), parent_of(source) as (from_handle, from_name):
        status = os.stat(from_name, dir_fd=from_handle, follow_symlinks=False)
        with naming(target.path), parent_of(target, create=True) as (handle, name):
            if not _is_free(handle, name, status):
                raise FileExists(f"{target.path!r} exists already")
            os.rename(from_name, name, src_dir_fd=from_handle, dst_dir_fd=handle)
            sync_directory(handle)
        sync_directory(from_handle)


def _is_free(handle: int, name: str, source: os.stat_result) -> bool:
    """Whether a name may be taken: nothing is there, or it is the source in other letters."""
    try:
        found = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return name != "." and os.path.samestat(found, source) and found.st_nlink == 1


def _refuse_root(place: Place) -> None:
    if place.real_path in (place.root, "/"):
        raise FileDenied(f"{place.path!r} is the root of the workspace")
