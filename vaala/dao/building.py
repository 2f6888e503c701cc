"""Conversations in the making: copies and imports, which take more than one append.

While the stream "building" is there, the conversation is not: it is not listed, cannot be opened,
and what an earlier run left so is removed at start-up.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from msgspec import Struct

from vaala.dao.entries import Entry
from vaala.dao.limits import COPY_BATCH_BYTES
from vaala_protocol.base import encode
from vaala_storage.blobs import BlobStorage
from vaala_storage.log import LogStorage

BUILDING_STREAM = "building"


class _Growing(Struct):
    last: int = 0
    waiting: list[Entry] = []
    size: int = 0


class Build:
    """Takes the entries of a new conversation, stream by stream, in bounded batches."""

    def __init__(self, log: LogStorage, path: str) -> None:
        self._log = log
        self._streams: dict[str, _Growing] = {}
        self.path = path

    async def add(self, stream: str, entry: Entry) -> None:
        """Append an entry, sooner or later; raises the errors of `LogStorage.append`."""
        growing = self._streams.setdefault(stream, _Growing())
        size = len(encode(entry))
        if growing.waiting and growing.size + size > COPY_BATCH_BYTES:
            await self._write(stream, growing)
        growing.waiting.append(entry)
        growing.size += size
        if growing.size > COPY_BATCH_BYTES:
            await self._write(stream, growing)

    async def finish(self) -> None:
        for stream, growing in self._streams.items():
            if growing.waiting:
                await self._write(stream, growing)

    async def _write(self, stream: str, growing: _Growing) -> None:
        growing.last = await self._log.append(
            self.path, stream, growing.waiting, expected=growing.last
        )
        growing.waiting = []
        growing.size = 0


@asynccontextmanager
async def building(
    log: LogStorage, blobs: BlobStorage, path: str, instance: str
) -> AsyncGenerator[Build]:
    """Make a conversation that exists, durably, once the block is left without an error.

    Otherwise, and on a cancel, nothing is left. Raises the errors of `LogStorage.append`.
    """
    await log.create(path, {BUILDING_STREAM: [{"t": "building", "instance": instance}]})
    try:
        build = Build(log, path)
        yield build
        await build.finish()
        with trio.CancelScope(shield=True):
            await log.delete_stream(path, BUILDING_STREAM)
    except BaseException:
        with trio.CancelScope(shield=True):
            await log.delete_path(path)
            await blobs.delete_path(path)
        raise
    await log.release(path)
