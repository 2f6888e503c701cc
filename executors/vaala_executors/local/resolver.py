"""Where a path really leads, and handles that lead nowhere else.

A path is followed to the real path of its deepest existing ancestor, plus the rest; that is
compared with the real paths of the roots. Then the file is reached from the root's handle, one
component at a time and following no link, so a directory that was swapped for a link in between
is refused by the kernel and not by an earlier look.

A hard link to a file outside is a file inside: the system cannot tell them apart. Writing
replaces the name and leaves the other name's content as it was.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager

from msgspec import Struct

from vaala_executors.errors import FileDenied, FileMissing, OutsideWorkspace
from vaala_executors.local.problems import naming

# O_PATH (Linux) opens directories that may be entered but not listed.
DIRECTORY_FLAGS = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class Place(Struct, frozen=True):
    """``given`` is the caller's path, for messages; ``root`` is None outside all roots."""

    given: str
    real: str
    root: str | None


class Resolver(Struct, frozen=True):
    directory: str
    additional: tuple[str, ...]

    def resolve(self, path: str) -> Place:
        """Return where ``path`` leads, through a link at its end too. Touches the disk."""
        with naming(path):
            return self._place(path, os.path.realpath(self._absolute(path)))

    def resolve_name(self, path: str) -> Place:
        """Like `resolve`, but a link at the end stands for itself: to remove or rename it."""
        with naming(path):
            absolute = self._absolute(path).rstrip("/") or "/"
            parent, name = os.path.split(absolute)
            if name in ("", ".", ".."):
                return self._place(path, os.path.realpath(absolute))
            return self._place(path, os.path.join(os.path.realpath(parent), name))

    def confine(self, place: Place, *, anywhere: bool) -> Place:
        """Return the place; raises `OutsideWorkspace`."""
        if place.root is None and not anywhere:
            raise OutsideWorkspace(
                f"{place.given!r} leads to {place.real!r}, outside the workspace {self.directory!r}"
            )
        return place

    def is_link(self, path: str) -> bool:
        return os.path.islink(self._absolute(path).rstrip("/"))

    def relative(self, real: str) -> str:
        """Return a real path relative to the working directory where it lies below it."""
        base = os.path.realpath(self.directory)
        if real == base:
            return "."
        return real[len(_slashed(base)) :] if real.startswith(_slashed(base)) else real

    def _absolute(self, path: str) -> str:
        return os.path.join(self.directory, path)

    def _place(self, given: str, real: str) -> Place:
        roots = (os.path.realpath(root) for root in (self.directory, *self.additional))
        root = next((root for root in roots if _within(real, root)), None)
        return Place(given, real, root)


@contextmanager
def parent_of(place: Place, *, create: bool = False) -> Generator[tuple[int, str]]:
    """Open the directory that holds a place; yield its handle and the name in it.

    ``create`` makes missing directories, durable on return. A place that is a root or ``/``
    is named "." in itself. Raises OSError, and `FileDenied` when a component became a link.
    """
    base = place.root or "/"
    parts = [part for part in place.real[len(base) :].split("/") if part]
    try:
        handle = os.open(base, DIRECTORY_FLAGS)
    except FileNotFoundError:
        raise FileMissing(
            f"{place.given!r} cannot be reached: the workspace directory {base!r} does not exist"
        ) from None
    try:
        for part in parts[:-1]:
            below = _enter(handle, part, place, create=create)
            os.close(handle)
            handle = below
        yield handle, parts[-1] if parts else "."
    finally:
        os.close(handle)


def sync_directory(handle: int) -> None:
    """Make the names in a directory durable; ``handle`` may be one that cannot be read."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    try:
        os.fsync(readable)
    finally:
        os.close(readable)


def _enter(handle: int, part: str, place: Place, *, create: bool) -> int:
    flags = DIRECTORY_FLAGS | os.O_NOFOLLOW
    try:
        return os.open(part, flags, dir_fd=handle)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(handle, part):
            raise FileDenied(f"{place.given!r} became a link while it was opened") from None
        raise
    try:
        os.mkdir(part, dir_fd=handle)
        sync_directory(handle)
    except FileExistsError:
        pass  # somebody else made it meanwhile; opening tells what it is
    return os.open(part, flags, dir_fd=handle)


def _is_link(handle: int, name: str) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)


def _within(real: str, root: str) -> bool:
    return real == root or real.startswith(_slashed(root))


def _slashed(path: str) -> str:
    return path if path.endswith("/") else path + "/"
