"""Thousands of conversations: what opening and listing cost; and a clock that is set back."""

from __future__ import annotations

import time
from pathlib import Path

from tests.vaala.dao.conversing import begin, say
from vaala.dao.data_dir import DataDir
from vaala.dao.index_db import NAMESPACES, ROWS
from vaala.dao.metadata import Metadata
from vaala.dao.row import ROW_VERSION, Row, StreamRow
from vaala.dao.store import ListQuery, open_memory_store, open_store
from vaala_protocol.ids import new_id
from vaala_storage.records import Record
from vaala_storage.sqlite import open_sqlite

MANY = 20_000


def row(number: int) -> Record:
    stream = StreamRow(seq=9, items=2, turns=1, active_at=number, first=f"number {number}")
    made = Row(
        version=ROW_VERSION,
        metadata_seq=2,
        metadata=Metadata(created_at=number),
        streams={"main": stream},
    )
    return made.record(new_id(), live=False)


async def fill(root: Path) -> None:
    """Write rows without conversations: the index alone is asked for a list."""
    async with open_store(root):
        pass
    file = DataDir(root).metadata_db
    async with open_sqlite(file, namespaces=NAMESPACES, sync="normal") as database:
        for start in range(0, MANY, 2_000):
            rows = [row(number) for number in range(start, start + 2_000)]
            await database.records.mset(ROWS, rows)


def cpu_s(since: float = 0.0) -> float:
    """Time that this process worked, all threads: other programs do not count."""
    return time.process_time() - since


async def test_twenty_thousand_conversations(tmp_path: Path) -> None:  # G5-1
    await fill(tmp_path)
    began = cpu_s()
    async with open_store(tmp_path) as store:
        assert cpu_s(began) < 1.0
        costs: list[float] = []
        for query in (ListQuery(), ListQuery(order="created"), ListQuery(newest_first=False)):
            began = cpu_s()
            page = await store.list(query, limit=50)
            costs.append(cpu_s(began))
            assert len(page.rows) == 50
            assert page.cursor is not None
        assert min(costs) < 0.1
        newest = await store.list(limit=2)
        assert [one.info.updated_at for one in newest.rows] == [MANY - 1, MANY - 2]


async def test_a_clock_that_is_set_back_changes_no_order() -> None:  # H10-1
    """What is newest in the list was written last, or before by a clock that was ahead."""
    hour = 3_600_000
    now = 10 * hour

    async with open_memory_store(clock=lambda: now) as store:
        log, session = await begin(store, created_at=now)
        await say(session, "before", now=now)
        now -= 2 * hour
        await say(session, "after", now=now)
        items = (await session.items()).items
        assert [item.at for item in items] == [1, 2, 3, 4]
        assert [item.created_at // hour for item in items] == [10, 10, 8, 8]
        row = await store.get(log.id)
        assert row is not None
        assert row.info.updated_at == 10 * hour  # never goes back
