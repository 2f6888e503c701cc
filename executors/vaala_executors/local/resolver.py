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

from vaala_executors.errors import FileDenied, FileMissing, OutsideWorkspace, PathMoved
from vaala_executors.local.problems import naming
from vaala_executors.workspace import Place

# O_PATH (Linux) opens directories that may be entered but not listed.
DIRECTORY_FLAGS = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class Resolver(Struct, frozen=True):
    """All of it touches the disk: for a thread."""

    directory: str
    additional: tuple[str, ...]

    def admit(self, asked: str | Place, *, follow: bool = True) -> Place:
        """Return where a call may work; raises `OutsideWorkspace` or `PathMoved`.

        Without ``follow`` a link at the end stands for itself.
        """
        path = asked if isinstance(asked, str) else asked.path
        place = self.resolve(path) if follow else self.resolve_name(path)
        if isinstance(asked, str):
            if place.root is None:
                raise OutsideWorkspace(
                    f"{path!r} leads to {place.real_path!r}, outside the workspace "
                    f"{self.directory!r}"
                )
        elif (place.real_path, place.root) != (asked.real_path, asked.root):
            raise PathMoved(
                f"{path!r} leads to another place than when it was looked at: look again"
            )
        return place

    def resolve(self, path: str) -> Place:
        """Return where ``path`` leads, through a link at its end too."""
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

    def base(self) -> str:
        """Return the real working directory."""
        return os.path.realpath(self.directory)

    def _absolute(self, path: str) -> str:
        return os.path.join(self.directory, path)

    def _place(self, path: str, real_path: str) -> Place:
        base = self.base()
        roots = (base, *map(os.path.realpath, self.additional))
        root = next((root for root in roots if _within(real_path, root)), None)
        return Place(path, real_path, relative(real_path, base), root)


def relative(real_path: str, base: str) -> str:
    """Return a real path relative to the real ``base`` where it lies below it."""
    if real_path == base:
        return "."
    return real_path.removeprefix(_slashed(base))


@contextmanager
def parent_of(place: Place, *, create: bool = False) -> Generator[tuple[int, str]]:
    """Open the directory that holds a place; yield its handle and the name in it.

    ``create`` makes missing directories, durable on return. A place that is a root or ``/``
    is named "." in itself. Raises OSError, and `FileDenied` when a component became a link.
    """
    base = place.root or "/"
    parts = [part for part in place.real_path[len(base) :].split("/") if part]
    try:
        handle = os.open(base, DIRECTORY_FLAGS)
    except FileNotFoundError:
        raise FileMissing(
            f"{place.path!r} cannot be reached: the workspace directory {base!r} does not exist"
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
            raise FileDenied(f"{place.path!r} became a link while it was opened") from None
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
