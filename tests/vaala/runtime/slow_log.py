"""A store in memory whose appends take their time, so that anything can happen meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import trio

from vaala.dao.index_db import NAMESPACES, IndexDb
from vaala.dao.opening import serve_store
from vaala.dao.store import Store
from vaala.dao.trash import StoredTrash
from vaala_storage.staged import StagedStorage
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.log import StagedLog


class SlowLog(StagedLog):
    """An append takes up to a second before it is made, and as long again before it is told."""

    def __init__(self, random: Random) -> None:
        super().__init__(Budget(1 << 30))
        self._random = random

    async def append(self, path: str, stream: str, entries: Sequence[Any], *, expected: int) -> int:
        await trio.sleep(self._random.random())
        last = await super().append(path, stream, entries, expected=expected)
        await trio.sleep(self._random.random())
        return last


@asynccontextmanager
async def open_slow_store(log: SlowLog) -> AsyncGenerator[Store]:
    memory = StagedStorage(namespaces=NAMESPACES)
    db = IndexDb()
    db.use(memory.records, memory.search)
    trash = StoredTrash(log, memory.blobs)
    async with serve_store(log, memory.blobs, db, trash, place="slow") as store:
        yield store
