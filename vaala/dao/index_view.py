"""The index for readers: its rows, and nothing to write to."""

from __future__ import annotations

from collections.abc import Sequence

from vaala.dao.entries import Entry
from vaala.dao.index_db import ROWS, IndexDb
from vaala.dao.row import Row, stored_row
from vaala_storage.errors import StorageError


class IndexView:
    """An `IndexFeed` of conversations that are only read."""

    def __init__(self, db: IndexDb) -> None:
        self._db = db

    async def mark_open(self, conversation_id: str) -> None:
        pass

    def note(self, conversation_id: str, stream: str, first: int, entries: Sequence[Entry]) -> None:
        pass

    def stale(self, conversation_id: str) -> None:
        pass

    def unsettled(self, conversation_id: str) -> None:
        pass

    def closed(self, conversation_id: str) -> None:
        pass

    async def row(self, conversation_id: str) -> Row | None:
        try:
            record = await self._db.records.get(ROWS, conversation_id)
        except StorageError:
            return None
        return None if record is None else stored_row(record)
