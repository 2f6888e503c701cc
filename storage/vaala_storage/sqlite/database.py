"""One SQLite file that holds records, a search index, logs and blobs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio
from msgspec import Struct

from vaala_storage.blobs import BlobStorage
from vaala_storage.log import LogStorage
from vaala_storage.records import Namespace, RecordStorage
from vaala_storage.search import SearchIndex
from vaala_storage.sqlite.access import Access
from vaala_storage.sqlite.blobs import SqliteBlobs
from vaala_storage.sqlite.connect import Opening, Sync, open_connections, quick_check
from vaala_storage.sqlite.limits import BUSY_S_MAX
from vaala_storage.sqlite.log import SqliteLog
from vaala_storage.sqlite.records import SqliteRecords
from vaala_storage.sqlite.search import SqliteSearch
from vaala_storage.sqlite.threads import Threads


class SqliteDatabase(Struct, frozen=True):
    """The stores of one open database. Any number of tasks may use them at once."""

    records: RecordStorage
    search: SearchIndex
    wal: bool
    """False: write-ahead logging did not engage, so readers and the writer wait for each other."""
    _access: Access
    _sync: Sync

    @property
    def log(self) -> LogStorage:
        """Its streams; raises ``ValueError`` when opened without ``sync="full"``."""
        self._check_durable()
        return SqliteLog(self._access)

    @property
    def blobs(self) -> BlobStorage:
        """Its blobs; raises ``ValueError`` when opened without ``sync="full"``."""
        self._check_durable()
        return SqliteBlobs(self._access)

    async def check(self) -> None:
        """Read the whole database; raises `StorageCorrupt`.

        It may take seconds for each GB and stops when cancelled; meant for the background, since
        opening only probes a large database.
        """
        await self._access.read(quick_check)

    def _check_durable(self) -> None:
        if self._sync != "full":
            raise ValueError(
                f'opened with sync="{self._sync}", which may lose what was written; logs and '
                'blobs need sync="full"'
            )


@asynccontextmanager
async def open_sqlite(
    path: Path,
    *,
    namespaces: Sequence[Namespace] = (),
    sync: Sync = "full",
    read_only: bool = False,
    busy_s: float = BUSY_S_MAX,
) -> AsyncGenerator[SqliteDatabase]:
    """Open a database (made for its owner alone when missing) until the block is left.

    ``sync="full"``: what returned is on disk. ``"normal"``: a power loss may take the last
    writes, all whole. ``"off"``: it may also damage the file, as a cache can afford that is
    rebuilt. No mode loses anything when only the process dies.

    ``read_only`` reads beside a writer in another process and changes nothing, though SQLite
    itself makes its two side files when no writer has; the writer must have declared the same
    ``namespaces``. For writing, one process at a time is meant: a second
    one waits up to ``busy_s`` seconds for each lock and then fails with `StorageFailed`.

    Raises `StorageCorrupt` (see `move_aside`), `ReadOnly` for a file of a newer version,
    `NotFound` when there is none to read, `StorageFull`, `StorageFailed`.
    Cancellation waits for the opening to end, and for a running commit when leaving.
    """
    opening = Opening(path, tuple(namespaces), sync, read_only, busy_s)
    opened = await trio.to_thread.run_sync(
        partial(open_connections, opening), limiter=trio.CapacityLimiter(1)
    )
    writer = Threads(path, writing=True)
    readers = Threads(path, writing=False)
    writers = [] if opened.writer is None else [opened.writer]
    # Readers close first: the last connection to close folds the write-ahead log into the file.
    async with writer.serving(writers), readers.serving(opened.readers):
        access = Access(path, readers, None if read_only else writer)
        yield SqliteDatabase(
            SqliteRecords(access, opened.tables), SqliteSearch(access), opened.wal, access, sync
        )
