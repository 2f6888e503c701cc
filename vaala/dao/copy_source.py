"""A conversation as something to be copied from: whole, up to where it was when that began."""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec import Struct

from vaala.dao.building import BUILDING_STREAM
from vaala.dao.entries import Entry
from vaala.dao.metadata import Metadata
from vaala.dao.walk import Stream, Walk
from vaala_storage.blobs import BlobStorage
from vaala_storage.log import LogStorage


class CopySource(Struct, frozen=True):
    log: LogStorage
    blobs: BlobStorage
    path: str
    metadata: Metadata
    title: str

    def stream(self, name: str) -> Stream:
        return Stream(self.log, self.path, name)

    async def ends(self) -> dict[str, int]:
        """Return the last sequence of each stream."""
        names = await self.log.streams(self.path)
        return {
            name: await self.log.last(self.path, name) for name in names if name != BUILDING_STREAM
        }

    async def entries(self, stream: str, end: int) -> AsyncIterator[Entry]:
        """Yield the entries up to sequence ``end``; gaps are passed over."""
        walk = Walk(self.stream(stream), 0)
        while (stored := await walk.next()) is not None and stored.seq <= end:
            yield dict(stored.entry)
