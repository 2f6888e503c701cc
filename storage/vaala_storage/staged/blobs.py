"""`BlobStorage` in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import trio

from vaala_storage.blob_rules import WriterState, check_range
from vaala_storage.blobs import BlobStorage, BlobWriter
from vaala_storage.errors import AlreadyExists, NotFound
from vaala_storage.names import check_name, check_path
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.limits import VALUE_BYTES


class StagedBlobs(BlobStorage):
    """Linked blobs share their bytes, though each counts in full."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._paths: dict[str, dict[str, bytes]] = {}

    async def put(self, path: str, key: str, data: bytes) -> None:
        _check(path, key)
        await trio.lowlevel.checkpoint()
        blobs = self._paths.get(path, {})
        if key in blobs:
            raise AlreadyExists(f"{path}/{key}: is there already")
        self._budget.change(_size(data))
        self._paths[path] = blobs
        blobs[key] = bytes(data)

    @asynccontextmanager
    async def writer(self, path: str, key: str) -> AsyncGenerator[BlobWriter]:
        _check(path, key)
        writer = StagedBlobWriter(self, self._budget, path, key)
        try:
            yield writer
        finally:
            writer.discard()

    async def get(
        self, path: str, key: str, *, offset: int = 0, length: int | None = None
    ) -> bytes:
        check_range(offset, length)
        data = await self._find(path, key)
        return data[offset : None if length is None else offset + length]

    async def size(self, path: str, key: str) -> int:
        return len(await self._find(path, key))

    async def keys(self, path: str) -> AsyncIterator[str]:
        check_path(path)
        await trio.lowlevel.checkpoint()
        for key in sorted(self._paths.get(path, {})):
            yield key

    async def link(self, source: str, target: str) -> None:
        check_path(source)
        check_path(target)
        await trio.lowlevel.checkpoint()
        old = self._paths.get(target, {})
        new = {key: data for key, data in self._paths.get(source, {}).items() if key not in old}
        if new:
            self._budget.change(sum(map(_size, new.values())))
            self._paths[target] = old | new

    async def delete_path(self, path: str) -> None:
        check_path(path)
        await trio.lowlevel.checkpoint()
        self.drop(path)

    def drop(self, path: str) -> None:
        """Remove every blob of a path."""
        self._budget.change(-sum(map(_size, self._paths.pop(path, {}).values())))

    async def _find(self, path: str, key: str) -> bytes:
        _check(path, key)
        await trio.lowlevel.checkpoint()
        try:
            return self._paths[path][key]
        except KeyError:
            raise NotFound(f"{path}/{key}: no such blob in memory") from None


class StagedBlobWriter(BlobWriter):
    """Made by `StagedBlobs.writer`; what it gathers counts in the budget until it is left."""

    def __init__(self, blobs: StagedBlobs, budget: Budget, path: str, key: str) -> None:
        self._blobs = blobs
        self._budget = budget
        self._path = path
        self._key = key
        self._buffer = bytearray()
        self._state = WriterState(f"{path}/{key}")

    async def write(self, data: bytes) -> None:
        with self._state.writing():
            await trio.lowlevel.checkpoint()
            self._budget.change(len(data))
            self._buffer += data

    async def commit(self) -> None:
        with self._state.committing():
            data = bytes(self._buffer)
            self.discard()
            await self._blobs.put(self._path, self._key, data)

    def discard(self) -> None:
        """Let go of what was gathered."""
        self._budget.change(-len(self._buffer))
        self._buffer.clear()


def _check(path: str, key: str) -> None:
    check_path(path)
    check_name(key)


def _size(data: bytes) -> int:
    return len(data) + VALUE_BYTES
