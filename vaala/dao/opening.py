"""Opening stores: lock, storage, index, and the work beside them, as nested lifetimes."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import trio

from vaala.dao.background import background, fenced
from vaala.dao.data_dir import DataDir
from vaala.dao.home import Shared
from vaala.dao.index import Index
from vaala.dao.index_db import NAMESPACES, IndexDb, keep_index
from vaala.dao.index_view import IndexView
from vaala.dao.limits import FINAL_FLUSH_S_MAX, MEMORY_STORE_BYTES_MAX
from vaala.dao.lock import hold_lock
from vaala.dao.owner import Store
from vaala.dao.reader import Reader
from vaala.dao.reconcile import Reconciler
from vaala.dao.times import now_ms
from vaala.dao.trash import DirectoryTrash, StoredTrash, Trash
from vaala.discovery import is_owned
from vaala_protocol.ids import new_id
from vaala_storage.blobs import BlobStorage
from vaala_storage.errors import StorageError
from vaala_storage.file import open_file_blobs, open_file_log
from vaala_storage.log import LogStorage
from vaala_storage.sqlite import open_sqlite
from vaala_storage.staged import StagedStorage

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_store(root: Path, *, clock: Callable[[], int] = now_ms) -> AsyncGenerator[Store]:
    """Open a data directory as its owner; what is missing in it is made.

    Raises `StoreLocked` when another runtime owns it, ``OSError`` and `StorageError` when it
    cannot be used. Index trouble is no reason to fail: it is repaired beside the work. Leaving
    writes what the index still lacks, for a few seconds at most, and releases the lock.
    """
    directory = DataDir(root)
    await trio.to_thread.run_sync(directory.prepare)
    async with (
        hold_lock(directory.lock) as is_in_place,
        open_file_log(directory.conversations) as files,
        open_file_blobs(directory.conversations) as blobs,
        keep_index(directory.metadata_db) as db,
    ):
        place = await trio.to_thread.run_sync(directory.ensure_id)
        trash = DirectoryTrash(directory, files)
        async with serve_store(files, blobs, db, trash, place=place, clock=clock) as store:
            store.is_in_place = is_in_place
            yield store


@asynccontextmanager
async def open_memory_store(
    *, clock: Callable[[], int] = now_ms, bytes_max: int = MEMORY_STORE_BYTES_MAX
) -> AsyncGenerator[Store]:
    """Open a store that keeps everything in memory, for embedding and tests."""
    memory = StagedStorage(namespaces=NAMESPACES, bytes_max=bytes_max)
    db = IndexDb()
    db.use(memory.records, memory.search)
    trash = StoredTrash(memory.log, memory.blobs)
    async with serve_store(
        memory.log, memory.blobs, db, trash, place=new_id(), clock=clock
    ) as store:
        yield store


@asynccontextmanager
async def serve_store(
    source: LogStorage,
    blobs: BlobStorage,
    db: IndexDb,
    trash: Trash,
    *,
    place: str,
    clock: Callable[[], int] = now_ms,
) -> AsyncGenerator[Store]:
    """Serve a store over open storage: what `open_store` and `open_memory_store` are made of.

    ``place`` is the id of the data directory. The caller holds what makes it the only writer.
    """
    instance = new_id()
    index = Index(db, source, instance)
    shared = Shared(
        log=source,
        blobs=blobs,
        staged=StagedStorage(),
        index=index,
        place=place,
        clock=clock,
        instance=instance,
    )
    reconciler = Reconciler(shared, index, trash)
    async with background() as nursery:
        nursery.start_soon(fenced, index.run, "writing the index")
        nursery.start_soon(fenced, reconciler.settle, "comparing the index with conversations")
        nursery.start_soon(fenced, reconciler.collect_trash, "emptying the trash")
        try:
            yield Store(shared, index, reconciler, trash)
        finally:
            with trio.move_on_after(FINAL_FLUSH_S_MAX, shield=True):
                await index.flush()


@asynccontextmanager
async def open_store_readonly(
    root: Path, *, clock: Callable[[], int] = now_ms
) -> AsyncGenerator[Reader]:
    """Open a data directory for reading, also beside a runtime; makes and changes nothing.

    Without a usable index one is made in memory from the conversations, which takes as long as
    reading them. (SQLite may leave two helper files of its own beside an index that nobody has
    open.)
    """
    directory = DataDir(root)
    async with AsyncExitStack() as stack:
        files = await stack.enter_async_context(
            open_file_log(directory.conversations, read_only=True)
        )
        blobs = await stack.enter_async_context(
            open_file_blobs(directory.conversations, read_only=True)
        )
        db = IndexDb()
        shared = Shared(
            log=files,
            blobs=blobs,
            staged=StagedStorage(),
            index=IndexView(db),
            place=await trio.to_thread.run_sync(directory.read_id),
            clock=clock,
            instance=new_id(),
        )
        try:
            opening = open_sqlite(directory.metadata_db, namespaces=NAMESPACES, read_only=True)
            database = await stack.enter_async_context(opening)
            db.use(database.records, database.search)
        except StorageError as error:
            log.info("no index to read, one is made in memory: %s", error)
            await _index_in_memory(db, shared)
        reason = f"{root} was opened for reading"
        yield Reader(shared, db, read_only=reason, live=is_owned(directory.lock))


async def _index_in_memory(db: IndexDb, shared: Shared) -> None:
    memory = StagedStorage(namespaces=NAMESPACES, bytes_max=MEMORY_STORE_BYTES_MAX)
    db.use(memory.records, memory.search)
    index = Index(db, shared.log, shared.instance)
    await Reconciler(shared, index, StoredTrash(shared.log, shared.blobs)).reindex()
