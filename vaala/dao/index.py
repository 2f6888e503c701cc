"""`Index`: rows and search documents of conversations. A cache over the log.

What is appended is gathered and folded into rows half a second later, or when a list or a search
asks: they read behind it. When gathering would hold too much, or something failed, the entries
are let go and read from the log instead; both ways fold the same entries, so they give the same
row. Nothing here ever fails an append.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import trio

from vaala.dao.entries import Entry
from vaala.dao.index_db import OPEN_MARKS, ROWS, IndexDb
from vaala.dao.index_writer import IndexFailed, IndexWriter, Pending, Rebuilt
from vaala.dao.limits import (
    INDEX_BATCH_CONVERSATIONS,
    INDEX_DELAY_S,
    INDEX_PENDING_BYTES_MAX,
    INDEX_RETRY_S_MAX,
)
from vaala.dao.row import Row, stored_row
from vaala_protocol.base import encode
from vaala_storage.errors import StorageCorrupt, StorageError
from vaala_storage.log import LogStorage
from vaala_storage.records import Record

log = logging.getLogger(__name__)


class Index:
    """Rows are written by one task at a time; any number may read.

    ``live`` are the conversations that this run has marked open.
    """

    def __init__(self, db: IndexDb, source: LogStorage, instance: str) -> None:
        self.db = db
        self._writer = IndexWriter(db, source)
        self._instance = instance
        self._pending: dict[str, Pending] = {}
        self._pending_bytes = 0
        self._closed: set[str] = set()
        self._unsettled: set[str] = set()
        self._wanted_marks: set[str] = set()
        self._writing = trio.Lock()
        self._marking = trio.Lock()
        self._wake = trio.Event()
        self.live: set[str] = set()
        self.behind = False
        """What was appended could not be written here: rows are old or missing."""

    async def mark_open(self, conversation_id: str) -> None:
        """Note who writes the conversation; marks that are wanted at once share one write."""
        self._closed.discard(conversation_id)
        if conversation_id not in self.live:
            self.live.add(conversation_id)
            self._wanted_marks.add(conversation_id)
        try:
            await self._write_marks()
        except IndexFailed as failed:
            self._failed(failed.cause)

    async def left_open(self, conversation_id: str) -> bool:
        """Tell whether an earlier run has, or may have, ended without closing the conversation."""
        if conversation_id in self.live:
            return False
        try:
            mark = await self.db.records.get(OPEN_MARKS, conversation_id)
        except StorageError as error:
            self._failed(error)
            return True
        return mark is not None and mark.value.get("instance") != self._instance

    def note(self, conversation_id: str, stream: str, first: int, entries: Sequence[Entry]) -> None:
        pending = self._pending.setdefault(conversation_id, Pending())
        self._wake.set()
        if pending.streams is None or not entries:
            return
        size = sum(len(encode(entry)) for entry in entries)
        if self._pending_bytes + size > INDEX_PENDING_BYTES_MAX:
            self._let_go(pending)
            return
        pending.streams.setdefault(stream, []).extend(enumerate(entries, first))
        pending.size += size
        self._pending_bytes += size

    def stale(self, conversation_id: str) -> None:
        self._let_go(self._pending.setdefault(conversation_id, Pending()))
        self._wake.set()

    def unsettled(self, conversation_id: str) -> None:
        self._unsettled.add(conversation_id)

    def closed(self, conversation_id: str) -> None:
        if conversation_id in self._unsettled:
            self.live.discard(conversation_id)
            self.stale(conversation_id)
            return
        self._closed.add(conversation_id)
        self._wake.set()

    def settle(self, conversation_id: str) -> None:
        """Bring up to date what an earlier run had open, unless it is open again."""
        self.stale(conversation_id)
        if conversation_id not in self.live:
            self._closed.add(conversation_id)

    def forget(self, conversation_id: str) -> None:
        """A conversation is gone: its row follows."""
        self._closed.discard(conversation_id)
        self._unsettled.discard(conversation_id)
        self.live.discard(conversation_id)
        self.stale(conversation_id)

    async def row(self, conversation_id: str) -> Row | None:
        try:
            record = await self.db.records.get(ROWS, conversation_id)
        except StorageError as error:
            self._failed(error)
            return None
        return None if record is None else stored_row(record)

    async def run(self) -> None:
        """Write what is gathered, every so often, until cancelled."""
        delay = INDEX_DELAY_S
        while True:
            await self._wake.wait()
            await trio.sleep(delay)
            self._wake = trio.Event()
            if await self.flush():
                delay = INDEX_DELAY_S
            else:
                delay = min(delay * 2, INDEX_RETRY_S_MAX)
                self._wake.set()

    async def flush(self) -> bool:
        """Bring every row up to date; return False when the index could not be written.

        Cancel: what was not written is read from the log at the next turn.
        """
        async with self._writing:
            while self._pending or self._closed:
                batch = self._take()
                closed = self._closed & batch.keys()
                try:
                    await self._write(batch, closed)
                except IndexFailed as failed:
                    self._failed(failed.cause)
                    self._put_back(batch, closed)
                    self.behind = True
                    return False
                except BaseException:
                    self._put_back(batch, closed)
                    raise
            self.behind = False
        return True

    async def rebuild(self, conversation_ids: Sequence[str]) -> Rebuilt:
        """Make rows anew from the log; raises `IndexFailed`."""
        async with self._writing:
            # The database may be a new one, without the marks of what is open.
            self._wanted_marks |= (self.live | self._unsettled).intersection(conversation_ids)
            try:
                await self._write_marks()
                return await self._writer.rebuild(conversation_ids, self.live)
            except IndexFailed as failed:
                self._failed(failed.cause)
                raise

    async def drop(self, conversation_ids: Sequence[str]) -> None:
        """Remove rows and documents; raises `IndexFailed`."""
        async with self._writing:
            await self._writer.drop(conversation_ids)

    def _take(self) -> dict[str, Pending]:
        ids = [*self._pending, *(self._closed - self._pending.keys())]
        batch: dict[str, Pending] = {}
        for conversation_id in ids[:INDEX_BATCH_CONVERSATIONS]:
            pending = self._pending.pop(conversation_id, None) or Pending()
            self._pending_bytes -= pending.size
            pending.size = 0
            batch[conversation_id] = pending
        return batch

    def _put_back(self, batch: Iterable[str], closed: set[str]) -> None:
        for conversation_id in batch:
            self.stale(conversation_id)
        self._closed |= closed - self.live

    async def _write(self, batch: dict[str, Pending], closed: set[str]) -> None:
        self._closed -= closed
        self.live -= closed
        await self._write_marks()
        await self._writer.bring_up(batch, self.live)
        if not closed:
            return
        async with self._marking:
            # One that was opened again meanwhile keeps its mark.
            gone = sorted(closed - self.live)
            try:
                await self.db.records.mdelete(OPEN_MARKS, gone)
            except StorageError as error:
                raise IndexFailed(error) from error

    async def _write_marks(self) -> None:
        """Write what could not be written before, too: no row of an open conversation is without.

        Raises `IndexFailed`; the marks are wanted still then, and after a cancel.
        """
        async with self._marking:
            wanted, self._wanted_marks = self._wanted_marks, set()
            if not wanted:
                return
            marks = [Record(key, {"instance": self._instance}, 0) for key in sorted(wanted)]
            try:
                await self.db.records.mset(OPEN_MARKS, marks)
            except BaseException as error:
                self._wanted_marks |= wanted
                if isinstance(error, StorageError):
                    raise IndexFailed(error) from error
                raise

    def _let_go(self, pending: Pending) -> None:
        self._pending_bytes -= pending.size
        pending.streams = None
        pending.size = 0

    def _failed(self, error: StorageError) -> None:
        log.warning("the index cannot be used now, it catches up later: %s", error)
        if isinstance(error, StorageCorrupt):
            self.db.found_corrupt()
