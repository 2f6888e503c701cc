"""A store on files in memory whose runtime can die, and an index that outlives it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from tests.vaala.dao.stories import WORDS
from vaala.dao.index_db import NAMESPACES, ROWS, IndexDb
from vaala.dao.opening import serve_store
from vaala.dao.store import Store
from vaala.dao.trash import StoredTrash
from vaala_storage.faults import FaultyFiles, MemoryFiles
from vaala_storage.file import open_file_blobs, open_file_log
from vaala_storage.log import LogStorage
from vaala_storage.records import RecordStorage
from vaala_storage.search import SearchIndex
from vaala_storage.staged import StagedStorage


class Machine:
    """What is left when the runtime is gone: its files and its index."""

    def __init__(self, random: Random | None = None) -> None:
        """``random`` draws faults once ``files.rate`` is set."""
        self.files = FaultyFiles(MemoryFiles(), random=random)
        self.index = StagedStorage(namespaces=NAMESPACES)
        self.db = IndexDb()

    def restart(self, seed: int) -> None:
        self.files.restart(Random(seed))

    def lose_index(self) -> None:
        """From now on nothing reaches the index: what a runtime that dies would leave of it."""
        self.db.lose("the runtime is dead")

    def find_index(self) -> None:
        self.db.use(self.index.records, self.index.search)

    @asynccontextmanager
    async def store(self, place: str = "here") -> AsyncGenerator[Store]:
        """Open the store; `lose_index` before the end makes the end a crash for the index."""
        self.db = IndexDb()
        self.find_index()
        async with self.log() as log, open_file_blobs("/data", files=self.files) as blobs:
            trash = StoredTrash(log, blobs)
            async with serve_store(log, blobs, self.db, trash, place=place) as store:
                yield store

    @asynccontextmanager
    async def log(self) -> AsyncGenerator[LogStorage]:
        async with open_file_log("/data", files=self.files) as log:
            yield log


async def rows_of(records: RecordStorage) -> dict[str, Any]:
    found: dict[str, Any] = {}
    cursor: str | None = None
    while True:
        page = await records.list(ROWS, cursor=cursor)
        found |= {record.key: (record.value, record.updated_at) for record in page.records}
        if (cursor := page.cursor) is None:
            return found


async def hits_of(search: SearchIndex, word: str) -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    cursor: str | None = None
    while True:
        page = await search.query(word, cursor=cursor)
        found |= {(hit.id, hit.field, hit.snippet) for hit in page.hits}
        if (cursor := page.cursor) is None:
            return found


async def contents(index: StagedStorage) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all rows, and what each word finds."""
    words = {word: await hits_of(index.search, word) for word in (*WORDS, "title")}
    return await rows_of(index.records), words


async def made_anew(machine: Machine) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what an index that is made from the log alone contains."""
    other = Machine()
    other.files = machine.files
    async with other.store() as store:
        await store.settled()
    return await contents(other.index)
