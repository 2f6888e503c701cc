"""Reading a data directory beside its owner, or without one: nothing is made or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vaala.dao.conversing import begin, exchange, files_below, listed, say
from vaala.dao.errors import ReadOnlyStore
from vaala.dao.store import ListQuery, open_store, open_store_readonly


async def test_it_sees_what_is_durable_beside_a_running_runtime(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "hello")
        await session.append(exchange("running", "now", at=3, number=7)[:4])
        await store.list()
        file = tmp_path / "conversations" / log.id / "main.jsonl"
        before = files_below(tmp_path)
        async with open_store_readonly(tmp_path) as reader:
            page = await reader.list()
            assert [(row.id, row.info.status) for row in page.rows] == [(log.id, "running")]
            assert (await reader.search("hello")).results[0].conversation.id == log.id
            read = await reader.open(log.id)
            assert not read.foreign
            assert len((await (await read.open_session(log.id)).items()).items) == 4
            whole = file.read_bytes()
            file.write_bytes(whole + b'{"seq":20,"n":1,"crc":1,"e":[{"half')
            assert len((await (await read.open_session(log.id)).items()).items) == 4
            file.write_bytes(whole)
            await read.close()
        assert files_below(tmp_path) == before


async def test_without_an_owner_nothing_runs(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await session.append(exchange("running", "now")[:4])
        assert (await store.list()).rows[0].info.status == "running"
    before = files_below(tmp_path)
    async with open_store_readonly(tmp_path) as reader:
        (row,) = (await reader.list()).rows
        assert (row.id, row.info.status) == (log.id, "idle")
    after = files_below(tmp_path)
    # SQLite makes these two for itself where nobody has the database open.
    for helper in ("metadata.db-wal", "metadata.db-shm"):
        after.pop(helper, None)
    assert after == before


async def test_without_an_index_one_is_made_in_memory(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        ids = []
        for number in range(3):
            log, session = await begin(store, tags=("t",))
            await say(session, f"question {number}", now=3000 + number)
            await log.close()
            ids.append(log.id)
    (tmp_path / "metadata.db").unlink()
    before = files_below(tmp_path)
    async with open_store_readonly(tmp_path) as reader:
        assert await listed(reader, ListQuery(tag="t")) == ids[::-1]
        assert (await reader.search("question 1")).results[0].conversation.id == ids[1]
    assert files_below(tmp_path) == before


async def test_nothing_can_be_written(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
    async with open_store_readonly(tmp_path) as reader:
        read = await reader.open(log.id)
        assert "opened for reading" in (read.read_only or "")
        with pytest.raises(ReadOnlyStore, match="opened for reading"):
            await read.update(title="no")
        with pytest.raises(ReadOnlyStore, match="opened for reading"):
            await (await read.open_session(log.id)).append(exchange("no", "no"))


async def test_a_directory_that_is_not_there_is_empty_and_stays_away(tmp_path: Path) -> None:
    async with open_store_readonly(tmp_path / "none") as reader:
        assert await listed(reader) == []
        assert (await reader.search("x")).results == ()
    assert not (tmp_path / "none").exists()


async def test_it_exports(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
    data = bytearray()

    async def sink(piece: bytes) -> None:
        data.extend(piece)

    async with open_store_readonly(tmp_path) as reader:
        await reader.export(log.id, sink)
    assert data[:2] == b"\x1f\x8b"
