"""Work beside the store: settling what an earlier run left, comparing rows with conversations."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from vaala.dao.building import BUILDING_STREAM
from vaala.dao.home import Shared
from vaala.dao.index import Index
from vaala.dao.index_db import OPEN_MARKS, ROWS
from vaala.dao.index_writer import IndexFailed
from vaala.dao.limits import (
    INDEX_BATCH_CONVERSATIONS,
    INDEX_RETRY_S_MAX,
    LIST_PAGE_MAX,
    PATHS_PAGE_MAX,
    RECONCILE_DELAY_S,
)
from vaala.dao.pages import ReindexReport
from vaala.dao.trash import Trash
from vaala_storage.errors import NotFound, StorageError
from vaala_storage.records import Query

log = logging.getLogger(__name__)

Progress = Callable[[int, int | None], None]
_UNREADABLE_TOLD_MAX = 100


class Reconciler:
    """``marks_settled`` is set once what earlier runs had open is up to date in the index,
    ``settled`` once rows and conversations have been compared since opening.
    """

    def __init__(self, shared: Shared, index: Index, trash: Trash) -> None:
        self._shared = shared
        self._index = index
        self._trash = trash
        self._trash_waits = trio.Event()
        self._reindexing = trio.Lock()
        self._building = False
        self.marks_settled = trio.Event()
        self.settled = trio.Event()

    @property
    def rebuilding(self) -> bool:
        """The index was made anew and lacks rows."""
        return self._building or self._index.db.made_new.is_set()

    def empty_trash(self) -> None:
        self._trash_waits.set()

    async def settle(self) -> None:
        """Settle what an earlier run left, then compare; again whenever the index is new."""
        await _until_done(self._settle_marks)
        self.marks_settled.set()
        with trio.move_on_after(RECONCILE_DELAY_S):
            await self._index.db.made_new.wait()
        while True:
            self._building = self.rebuilding
            self._index.db.made_new = trio.Event()
            await _until_done(self.compare)
            self._building = False
            self.settled.set()
            await self._index.db.made_new.wait()

    async def collect_trash(self) -> None:
        """Remove what was discarded, now and whenever something is."""
        while True:
            self._trash_waits = trio.Event()
            await self._trash.empty()
            await self._trash_waits.wait()

    async def compare(self) -> None:
        """Make missing rows, drop those without a conversation, remove unfinished copies.

        Damage in a log is logged; raises the errors of the index.
        """
        batch: list[str] = []
        async for conversation_id, has_row, exists in self._both():
            if not exists:
                await self._index.drop((conversation_id,))
            elif not has_row and not await self._remove_unfinished(conversation_id):
                batch.append(conversation_id)
            if len(batch) == INDEX_BATCH_CONVERSATIONS:
                await self._index.rebuild(batch)
                batch = []
        await self._index.rebuild(batch)

    async def reindex(self, progress: Progress | None = None) -> ReindexReport:
        """Make every row anew; see `Store.reindex`."""
        async with self._reindexing:
            await self._index.flush()
            done = damaged = removed = 0
            unreadable: list[str] = []
            batch: list[str] = []
            total: int | None = None

            async def rebuild() -> None:
                nonlocal done, damaged
                rebuilt = await self._index.rebuild(batch)
                unreadable.extend(rebuilt.unreadable)
                damaged += rebuilt.damaged
                done += len(batch)
                batch.clear()
                if progress is not None:
                    progress(done, total)

            async for conversation_id, _, exists in self._both():
                if exists:
                    batch.append(conversation_id)
                else:
                    await self._index.drop((conversation_id,))
                    removed += 1
                if len(batch) == INDEX_BATCH_CONVERSATIONS:
                    await rebuild()
            if batch:
                await rebuild()
            return ReindexReport(done, removed, tuple(unreadable[:_UNREADABLE_TOLD_MAX]), damaged)

    async def _settle_marks(self) -> None:
        """Bring up to date what runs before this one had open, and clear their marks."""
        cursor: str | None = None
        found: list[str] = []
        records = self._index.db.records
        while True:
            page = await records.list(OPEN_MARKS, cursor=cursor, limit=LIST_PAGE_MAX)
            found += [
                mark.key
                for mark in page.records
                if mark.value.get("instance") != self._shared.instance
            ]
            cursor = page.cursor
            if cursor is None:
                break
        for conversation_id in found:
            await self._drop_lonely_blobs(conversation_id)
            if await self._secure(conversation_id):
                self._index.settle(conversation_id)
        await self._index.flush()

    async def _secure(self, conversation_id: str) -> bool:
        """Make durable what the index will claim to know; False: not now, the mark stays."""
        try:
            await self._shared.log.make_durable(conversation_id)
        except StorageError as error:
            log.warning("conversation %s is settled at the next start: %s", conversation_id, error)
            return False
        return True

    async def _drop_lonely_blobs(self, conversation_id: str) -> None:
        """Remove the blobs of a conversation whose move to disk did not come to its streams."""
        try:
            await self._shared.log.streams(conversation_id)
        except NotFound:
            await self._shared.blobs.delete_path(conversation_id)

    async def _remove_unfinished(self, conversation_id: str) -> bool:
        """Remove a copy that an earlier run did not finish; tell whether it is in the making."""
        try:
            names = await self._shared.log.streams(conversation_id)
            if BUILDING_STREAM not in names:
                return False
            page = await self._shared.log.read(conversation_id, BUILDING_STREAM, limit=1)
        except NotFound:
            return True
        ours = any(e.entry.get("instance") == self._shared.instance for e in page.entries)
        if not ours:
            await self._shared.log.delete_path(conversation_id)
            await self._shared.blobs.delete_path(conversation_id)
        return True

    async def _both(self) -> AsyncIterator[tuple[str, bool, bool]]:
        """Yield (id, has a row, exists) for every id that is in the index or in the log."""
        rows, paths = self._rows(), self._paths()
        row, path = await anext(rows, None), await anext(paths, None)
        while row is not None or path is not None:
            if path is None or (row is not None and row < path):
                assert row is not None
                yield row, True, False
                row = await anext(rows, None)
            elif row is None or path < row:
                yield path, False, True
                path = await anext(paths, None)
            else:
                yield path, True, True
                row, path = await anext(rows, None), await anext(paths, None)

    async def _rows(self) -> AsyncIterator[str]:
        start: str | None = None
        while True:
            page = await self._index.db.records.list(ROWS, Query(start=start), limit=LIST_PAGE_MAX)
            for record in page.records:
                yield record.key
            if page.cursor is None or not page.records:
                return
            # The key after the last one: a cursor would tie the pages to one moment.
            start = page.records[-1].key + "\0"

    async def _paths(self) -> AsyncIterator[str]:
        cursor: str | None = None
        while True:
            page = await self._shared.log.paths(cursor=cursor, limit=PATHS_PAGE_MAX)
            for path in page.paths:
                if "/" not in path:
                    yield path
            cursor = page.cursor
            if cursor is None:
                return


async def _until_done(work: Callable[[], Awaitable[None]]) -> None:
    """Repeat ``work`` from its start, with pauses, until the index takes it."""
    pause_s = 1.0
    while True:
        try:
            return await work()
        except (IndexFailed, StorageError) as error:
            log.warning("the index is repaired later: %s", error)
        await trio.sleep(pause_s)
        pause_s = min(2 * pause_s, INDEX_RETRY_S_MAX)
