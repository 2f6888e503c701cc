"""The database of the index: opened when it can be, replaced when it is damaged.

It is a cache. One that cannot be read is moved aside and an empty one takes its place; while there
is none, its users get `IndexUnavailable` and go on without.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from vaala.dao.background import background
from vaala.dao.errors import IndexUnavailable
from vaala.dao.limits import INDEX_RETRY_S_MAX
from vaala.dao.row import FILTERS
from vaala_storage.errors import ReadOnly, StorageCorrupt, StorageError
from vaala_storage.records import Namespace, RecordStorage
from vaala_storage.search import SearchIndex
from vaala_storage.sqlite import move_aside, open_sqlite

log = logging.getLogger(__name__)

ROWS = "conversations"
OPEN_MARKS = "open"
NAMESPACES = (Namespace(ROWS, FILTERS), Namespace(OPEN_MARKS))


class IndexDb:
    """The stores of the index, as far as they are open."""

    def __init__(self) -> None:
        self._stores: tuple[RecordStorage, SearchIndex] | None = None
        self._reason = "it has not been opened"
        self.corrupt = trio.Event()
        self.made_new = trio.Event()
        """An empty database took the place of a missing or damaged one: rows must be built."""

    @property
    def records(self) -> RecordStorage:
        return self._opened()[0]

    @property
    def search(self) -> SearchIndex:
        return self._opened()[1]

    def check(self) -> None:
        """Raise `IndexUnavailable` when nothing is open."""
        self._opened()

    def use(self, records: RecordStorage, search: SearchIndex) -> None:
        self._stores = (records, search)
        self.corrupt = trio.Event()

    def lose(self, reason: str) -> None:
        self._stores = None
        self._reason = reason

    def found_corrupt(self) -> None:
        """Tell the keeper of the database that it is damaged."""
        self.corrupt.set()

    def _opened(self) -> tuple[RecordStorage, SearchIndex]:
        if self._stores is None:
            raise IndexUnavailable(self._reason)
        return self._stores


@asynccontextmanager
async def keep_index(path: Path) -> AsyncGenerator[IndexDb]:
    """Keep the database at ``path`` open while the block runs.

    Raises nothing: one that cannot be opened is tried again, and its users are told meanwhile.
    """
    db = IndexDb()
    async with background() as nursery:
        tried = trio.Event()
        nursery.start_soon(_keep, db, path, tried)
        await tried.wait()
        yield db


async def _keep(db: IndexDb, path: Path, tried: trio.Event) -> None:
    delay = 1.0
    while True:
        try:
            try:
                await _serve_once(db, path, tried)
                log.warning("%s is damaged, it is moved aside and made anew", path)
            except (StorageCorrupt, ReadOnly) as error:
                log.warning("%s cannot be used, it is moved aside and made anew: %s", path, error)
            await trio.to_thread.run_sync(move_aside, path)
        except (StorageError, OSError) as error:
            log.warning("the index cannot be opened, it is tried again: %s", error)
            db.lose(str(error))
            tried.set()
            await trio.sleep(delay)
            delay = min(2 * delay, INDEX_RETRY_S_MAX)


async def _serve_once(db: IndexDb, path: Path, tried: trio.Event) -> None:
    """Open the database and serve it until it is found damaged."""
    new = not await trio.Path(path).exists()
    # A power loss may take the last rows, never damage them: opening a conversation finds out.
    async with open_sqlite(path, namespaces=NAMESPACES, sync="normal") as database:
        db.use(database.records, database.search)
        if new:
            db.made_new.set()
        tried.set()
        try:
            await db.corrupt.wait()
        finally:
            db.lose("it is being replaced")
