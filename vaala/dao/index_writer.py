"""Making rows and documents and storing them: the part of the index that one task does."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from vaala.dao.background import for_each
from vaala.dao.building import BUILDING_STREAM
from vaala.dao.entries import Entry
from vaala.dao.fold_log import fold_log, is_ahead
from vaala.dao.index_db import OPEN_MARKS, ROWS, IndexDb
from vaala.dao.limits import INDEX_BATCH_DOCUMENTS, INDEX_READS_AT_ONCE
from vaala.dao.row import Row, RowFold, stored_row
from vaala_storage.errors import NotFound, StorageError
from vaala_storage.log import LogStorage
from vaala_storage.records import Record
from vaala_storage.search import Document

log = logging.getLogger(__name__)


class IndexFailed(Exception):
    """The index cannot be written; the cause tells why. Errors of the log never come as this."""

    def __init__(self, cause: StorageError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Pending(Struct):
    """What waits for one row. ``streams`` None: read the log."""

    streams: dict[str, list[tuple[int, Entry]]] | None = {}
    size: int = 0

    def follows(self, row: Row) -> bool:
        """Tell whether what waits begins right after what the row was made from."""
        waiting = self.streams or {}
        return all(entries[0][0] == row.sequence(name) + 1 for name, entries in waiting.items())


class _Written(Struct):
    """What one turn of the writer stores."""

    records: list[Record] = []
    documents: list[Document] = []
    gone: list[str] = []


class Rebuilt(Struct):
    """What could not be read, and how many conversations had gaps."""

    unreadable: list[str] = []
    damaged: int = 0


class IndexWriter:
    """All methods raise `IndexFailed`. A log that cannot be read is logged and its row left."""

    def __init__(self, db: IndexDb, source: LogStorage) -> None:
        self._db = db
        self._source = source

    async def bring_up(self, batch: Mapping[str, Pending], live: Collection[str]) -> None:
        """Fold what waits into the rows; make those anew that are not there or know too much."""
        try:
            records = await self._db.records.mget(ROWS, list(batch))
        except StorageError as error:
            raise IndexFailed(error) from error
        written = _Written()
        for conversation_id, pending in batch.items():
            record = records.get(conversation_id)
            try:
                fold = await self._brought_up(record, pending, written)
                if fold is None:
                    fold = await self._anew(conversation_id, record is not None, written)
            except StorageError as error:
                _unreadable(conversation_id, error)
                continue
            if fold is not None:
                self._collect(fold, live, written)
        await self._store(written)

    async def rebuild(self, conversation_ids: Sequence[str], live: Collection[str]) -> Rebuilt:
        """Make rows anew from the first entry on."""
        result = Rebuilt()
        written = _Written()
        try:
            present = await self._db.records.mget(ROWS, conversation_ids)
        except StorageError as error:
            raise IndexFailed(error) from error

        async def make(conversation_id: str) -> None:
            try:
                stale = await self._has_stale_documents(present.get(conversation_id))
                fold = await self._anew(conversation_id, stale, written, result)
            except StorageError as error:
                _unreadable(conversation_id, error)
                result.unreadable.append(conversation_id)
            else:
                if fold is not None:
                    self._collect(fold, live, written)

        await for_each(conversation_ids, make, at_once=INDEX_READS_AT_ONCE)
        await self._store(written)
        return result

    async def drop(self, conversation_ids: Sequence[str]) -> None:
        """Remove rows, documents and marks."""
        if not conversation_ids:
            return
        try:
            for conversation_id in conversation_ids:
                await self._db.search.delete_group(conversation_id)
            await self._db.records.mdelete(ROWS, conversation_ids)
            await self._db.records.mdelete(OPEN_MARKS, conversation_ids)
        except StorageError as error:
            raise IndexFailed(error) from error

    async def _brought_up(
        self, record: Record | None, pending: Pending, written: _Written
    ) -> RowFold | None:
        """Return the row folded up to the newest entry; None when it must be made anew."""
        row = None if record is None else stored_row(record)
        if record is None or row is None:
            return None
        fold = RowFold(record.key, row)
        if pending.streams is not None and pending.follows(row):
            for stream, entries in pending.streams.items():
                for seq, entry in entries:
                    fold.apply(stream, seq, entry)
            return fold
        try:
            if await is_ahead(self._source, record.key, row):
                return None
            await self._fold(fold, written)
        except NotFound:
            return None
        return fold

    async def _has_stale_documents(self, record: Record | None) -> bool:
        """Tell whether the index may hold texts that the log does not have (any more).

        Otherwise they stay where they are: putting a text again that has not changed is cheap.
        """
        if record is None:
            return False
        row = stored_row(record)
        try:
            return row is None or await is_ahead(self._source, record.key, row)
        except NotFound:
            return True

    async def _anew(
        self,
        conversation_id: str,
        stale: bool,
        written: _Written,
        result: Rebuilt | None = None,
    ) -> RowFold | None:
        """Return the row made from the first entry on; None when the conversation is gone."""
        if stale:
            try:
                await self._db.search.delete_group(conversation_id)
            except StorageError as error:
                raise IndexFailed(error) from error
        fold = RowFold(conversation_id)
        try:
            damaged = await self._fold(fold, written)
        except NotFound:
            written.gone.append(conversation_id)
            return None
        if result is not None:
            result.damaged += damaged
        return fold

    async def _fold(self, fold: RowFold, written: _Written) -> bool:
        streams = await self._source.streams(fold.conversation_id)
        if BUILDING_STREAM in streams:
            raise NotFound(f"{fold.conversation_id}: still being made")

        async def spill(full: RowFold) -> None:
            written.documents += full.documents.values()
            full.documents.clear()
            await self._store_documents(written)

        return await fold_log(self._source, fold, streams, spill=spill)

    def _collect(self, fold: RowFold, live: Collection[str], written: _Written) -> None:
        row = fold.finish()
        written.records.append(row.record(fold.conversation_id, live=fold.conversation_id in live))
        written.documents += fold.documents.values()

    async def _store(self, written: _Written) -> None:
        """Write documents, then rows: a row claims the documents of what it was made from."""
        await self._store_documents(written)
        if written.records:
            try:
                await self._db.records.mset(ROWS, written.records)
            except StorageError as error:
                raise IndexFailed(error) from error
        await self.drop(written.gone)

    async def _store_documents(self, written: _Written) -> None:
        documents, written.documents = written.documents, []
        try:
            for start in range(0, len(documents), INDEX_BATCH_DOCUMENTS):
                await self._db.search.put(documents[start : start + INDEX_BATCH_DOCUMENTS])
        except StorageError as error:
            raise IndexFailed(error) from error


def _unreadable(conversation_id: str, error: StorageError) -> None:
    log.warning("conversation %s cannot be read for the index: %s", conversation_id, error)
