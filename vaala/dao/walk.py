"""Walks over a stream, entry by entry, that read it in bounded pieces."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from vaala.dao.limits import READ_CHUNK_ENTRIES
from vaala_storage.log import Damage, LogStorage, Stored


class Stream(Struct, frozen=True):
    """One stream of one path, for reading."""

    log: LogStorage
    path: str
    name: str


class Walk(Struct):
    """Yields entries one way from a place on; holds one piece of the stream at a time.

    ``edge`` is the sequence to start beside: entries after it, or before it when going back (None:
    from the end).
    """

    stream: Stream
    edge: int | None
    back: bool = False
    damage: list[Damage] = []
    _ready: deque[Stored] = field(default_factory=deque)
    _more: bool = True

    async def next(self) -> Stored | None:
        """Return the next entry, or None at the end of the stream."""
        while not self._ready and self._more:
            await self._fill()
        if not self._ready:
            return None
        stored = self._ready.popleft()
        self.edge = stored.seq
        return stored

    def unread(self, stored: Stored) -> None:
        """Put back the entry that `next` gave last."""
        self._ready.appendleft(stored)

    async def _fill(self) -> None:
        page = await self.stream.log.read(
            self.stream.path,
            self.stream.name,
            after=None if self.back else self.edge,
            before=self.edge if self.back else None,
            limit=READ_CHUNK_ENTRIES,
            reverse=self.back,
        )
        self.damage += page.damage
        self._ready.extend(page.entries)
        self._more = page.more and bool(page.entries)
