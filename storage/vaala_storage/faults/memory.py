"""`MemoryFiles`: a file system in memory that knows what is on its device, so that it can crash.

Files: a sync makes the bytes durable. At a crash the bytes written since survive in part: not at
all, cut short, whole, or with sectors of zeros among them. A failed sync leaves the bytes readable
but marks them as written, so that the next sync does not write them either (as Linux does).

Names: makings, renames and removals are journaled in order. A sync of a directory makes them
durable up to the last one in it; at a crash a beginning of the others survives.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from random import Random
from typing import TypeAlias

from msgspec import Struct, field

from vaala_storage.file.system import DirectoryEntry, Files, FileState

SECTOR_BYTES = 512


def _common(one: bytes, other: bytearray) -> int:
    """Return how many bytes at the beginning are the same."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


class _File(Struct, eq=False):
    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unwritten: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Ranges that a failed sync has dropped: readable, and never written again."""
    links: int = 0

    def truncate(self, size: int) -> None:
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))
        self.unwritten = [(start, min(end, size)) for start, end in self.unwritten if start < size]

    def sync(self) -> None:
        written = bytearray(self.data)
        for start, end in self.unwritten:
            written[start:end] = bytes(end - start)
        self.durable = bytes(written)

    def fail_sync(self) -> None:
        if len(self.data) > len(self.durable):
            self.unwritten.append((len(self.durable), len(self.data)))

    def crash(self, random: Random) -> None:
        kept = _common(self.durable, self.data)
        if kept < len(self.durable) and random.random() < 0.5:
            survived = self.durable  # what was cut off comes back
        else:
            survived = self.durable[:kept] + torn(bytes(self.data[kept:]), random)
        self.data, self.durable, self.unwritten = bytearray(survived), survived, []


class _Directory(Struct, eq=False):
    names: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    durable: dict[str, _Node] = field(default_factory=dict[str, "_Node"])


_Node: TypeAlias = "_File | _Directory"
_Change: TypeAlias = "tuple[tuple[_Directory, str, _Node | None], ...]"
"""Names that change in one step; None: the name goes."""


def torn(data: bytes, random: Random) -> bytes:
    """Return what a crash leaves of bytes that no sync has covered."""
    match random.randrange(4):
        case 0:
            return b""
        case 1:
            return data[: random.randint(0, len(data))]
        case 2:
            return data
        case _:
            sectors = [data[at : at + SECTOR_BYTES] for at in range(0, len(data), SECTOR_BYTES)]
            return b"".join(
                bytes(len(sector)) if random.random() < 0.5 else sector for sector in sectors
            )


class MemoryFiles(Files):
    """Paths are absolute; ``space`` is how many bytes can still be written (None: no limit)."""

    blocking = False

    def __init__(self, *, space: int | None = None) -> None:
        self.space = space
        self._root = _Directory()
        self._open: dict[int, _File] = {}
        self._next_handle = 3
        self._journal: list[_Change] = []

    @property
    def open_count(self) -> int:
        return len(self._open)

    def crash(self, random: Random) -> None:
        """Lose what is not durable, as ``random`` draws it; every handle is gone."""
        self._commit(random.randint(0, len(self._journal)))
        self._journal.clear()
        self._open.clear()
        for node in _below(self._root, lambda directory: directory.durable):
            if isinstance(node, _Directory):
                node.names = dict(node.durable)
            else:
                node.crash(random)
                node.links = 0
        for node in _below(self._root, lambda directory: directory.names):
            if isinstance(node, _File):
                node.links += 1

    def fail_sync(self, handle: int) -> None:
        """Do what a failed sync does to a file."""
        self._file(handle).fail_sync()

    def content(self, path: str) -> bytes:
        """Return a file's bytes as a reader sees them."""
        node = self._find(path)
        if not isinstance(node, _File):
            raise _error(errno.EISDIR, path)
        return bytes(node.data)

    def open_read(self, path: str) -> int:
        return self._opened(self._find(path), path)

    def open_append(self, path: str, *, create: bool) -> int:
        directory, name = self._parent(path)
        if create and name not in directory.names:
            return self.open_new(path)
        return self._opened(self._find(path), path)

    def open_new(self, path: str) -> int:
        directory, name = self._parent(path)
        if name in directory.names:
            raise _error(errno.EEXIST, path)
        file = _File()
        self._change((directory, name, file))
        return self._opened(file, path)

    def close(self, handle: int) -> None:
        self._file(handle)
        del self._open[handle]

    def state(self, handle: int) -> FileState:
        file = self._file(handle)
        return FileState(len(file.data), file.links)

    def read(self, handle: int, offset: int, length: int) -> bytes:
        return bytes(self._file(handle).data[offset : offset + length])

    def write(self, handle: int, data: bytes) -> int:
        file = self._file(handle)
        if self.space is not None:
            if not self.space:
                raise _error(errno.ENOSPC, "write")
            data = data[: self.space]
            self.space -= len(data)
        file.data.extend(data)
        return len(data)

    def truncate(self, handle: int, size: int) -> None:
        file = self._file(handle)
        if self.space is not None:
            self.space += len(file.data) - size
        file.truncate(size)

    def sync_data(self, handle: int) -> None:
        self._file(handle).sync()

    def sync_directory(self, path: str) -> None:
        directory = self._directory(path)
        touched = [
            index
            for index, change in enumerate(self._journal)
            if any(where is directory for where, _, _ in change)
        ]
        if touched:
            self._commit(touched[-1] + 1)

    def make_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if name in directory.names:
            raise _error(errno.EEXIST, path)
        self._change((directory, name, _Directory()))

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        return [
            DirectoryEntry(name, isinstance(node, _Directory))
            for name, node in self._directory(path).names.items()
        ]

    def rename(self, old: str, new: str) -> None:
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        node, there = self._find(old), target.names.get(new_name)
        if isinstance(there, _Directory) and there.names:
            raise _error(errno.ENOTEMPTY, new)
        if there is not None and isinstance(there, _Directory) != isinstance(node, _Directory):
            raise _error(errno.ENOTDIR, new)
        self._change((source, old_name, None), (target, new_name, node))

    def link(self, old: str, new: str) -> None:
        node = self._find(old)
        directory, name = self._parent(new)
        if name in directory.names:
            raise _error(errno.EEXIST, new)
        if isinstance(node, _Directory):
            raise _error(errno.EPERM, old)
        self._change((directory, name, node))

    def remove(self, path: str) -> None:
        directory, name = self._parent(path)
        node = self._find(path)
        if isinstance(node, _Directory):
            raise _error(errno.EISDIR, path)
        self._change((directory, name, None))
        if self.space is not None and not node.links:
            self.space += len(node.data)

    def remove_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if self._directory(path).names:
            raise _error(errno.ENOTEMPTY, path)
        self._change((directory, name, None))

    def _find(self, path: str) -> _Node:
        node: _Node = self._root
        for name in path.strip("/").split("/") if path.strip("/") else ():
            if not isinstance(node, _Directory):
                raise _error(errno.ENOTDIR, path)
            if name not in node.names:
                raise _error(errno.ENOENT, path)
            node = node.names[name]
        return node

    def _directory(self, path: str) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise _error(errno.ENOTDIR, path)
        return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        return self._directory(os.path.dirname(path)), os.path.basename(path)

    def _opened(self, node: _Node, path: str) -> int:
        if isinstance(node, _Directory):
            raise _error(errno.EISDIR, path)
        self._next_handle += 1
        self._open[self._next_handle] = node
        return self._next_handle

    def _file(self, handle: int) -> _File:
        if handle not in self._open:
            raise _error(errno.EBADF, str(handle))
        return self._open[handle]

    def _change(self, *change: tuple[_Directory, str, _Node | None]) -> None:
        for directory, name, node in change:
            before = directory.names.pop(name, None)
            if isinstance(before, _File):
                before.links -= 1
            if isinstance(node, _File):
                node.links += 1
            if node is not None:
                directory.names[name] = node
        self._journal.append(change)

    def _commit(self, count: int) -> None:
        for change in self._journal[:count]:
            for directory, name, node in change:
                directory.durable.pop(name, None)
                if node is not None:
                    directory.durable[name] = node
        del self._journal[:count]


def _below(directory: _Directory, names: Callable[[_Directory], dict[str, _Node]]) -> list[_Node]:
    """Return a directory and everything below it; a file once for each of its names."""
    found: list[_Node] = [directory]
    for node in names(directory).values():
        found.extend(_below(node, names) if isinstance(node, _Directory) else [node])
    return found


def _error(number: int, what: str) -> OSError:
    return OSError(number, os.strerror(number), what)
