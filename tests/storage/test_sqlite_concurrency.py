"""Many tasks, several connections, cancels and failing disks on one SQLite database."""

from __future__ import annotations

import errno
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from vaala_storage import Conflict, StorageFailed, StorageFull, StreamBroken
from vaala_storage.records import Namespace, Record
from vaala_storage.search import Document
from vaala_storage.sqlite import SqliteDatabase, open_sqlite
from vaala_storage.sqlite.failures import translate

SPACE = Namespace("space", ("kind",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
async def database(path: Path) -> AsyncGenerator[SqliteDatabase]:
    async with open_sqlite(path, namespaces=[SPACE], busy_s=0.05) as opened:
        yield opened


@contextmanager
def locked(path: Path) -> Generator[apsw.Connection]:
    """Hold the lock for writing, as another process would."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.execute("ROLLBACK")
        other.close()


async def test_a_writer_in_another_process_is_waited_for(path: Path) -> None:
    async with open_sqlite(path, namespaces=[SPACE]) as database, trio.open_nursery() as nursery:
        with locked(path):
            nursery.start_soon(database.records.set, "space", Record("a", {}, 0))
            await wait_all_tasks_blocked()
            assert await database.records.count("space") == 0
        nursery.cancel_scope.deadline = trio.current_time() + 60
    assert not nursery.cancel_scope.cancelled_caught


async def test_a_lock_that_stays_is_an_error_and_nothing_is_written(
    path: Path, database: SqliteDatabase
) -> None:
    with locked(path), pytest.raises(StorageFailed, match="another process"):
        await database.records.set("space", Record("a", {}, 0))
    assert await database.records.count("space") == 0
    await database.records.set("space", Record("a", {}, 0))
    assert await database.records.count("space") == 1


async def test_two_databases_on_one_file_take_turns(path: Path) -> None:
    async with (
        open_sqlite(path, namespaces=[SPACE]) as one,
        open_sqlite(path, namespaces=[SPACE]) as two,
    ):
        await one.log.create("p", {"s": []})
        assert await two.log.append("p", "s", [{"by": 2}], expected=0) == 1
        with pytest.raises(Conflict):
            await one.log.append("p", "s", [{"by": 1}], expected=0)
        async with trio.open_nursery() as nursery:
            for number in range(20):
                store = (one, two)[number % 2].records
                nursery.start_soon(store.set, "space", Record(str(number), {}, 0))
        assert await one.records.count("space") == 20


async def test_records_and_search_and_log_share_the_file(database: SqliteDatabase) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(30):
            name = str(number)
            nursery.start_soon(database.records.set, "space", Record(name, {"kind": 1}, 0))
            document = Document(name, "g", {"text": f"number {number}"})
            nursery.start_soon(database.search.put, [document])
            nursery.start_soon(database.log.create, f"p{number}", {"s": [{"n": number}]})
            nursery.start_soon(database.blobs.put, f"p{number}", "k", b"bytes")
    assert await database.records.count("space", where={"kind": 1}) == 30
    assert len((await database.search.query("number", limit=100)).hits) == 30
    assert len((await database.log.paths()).paths) == 30
    await database.log.delete_path("p7")
    assert [key async for key in database.blobs.keys("p7")] == []
    await database.check()


class FaultyFile(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename, flags: list[int], faults: Faults) -> None:
        super().__init__(faults.system, name, flags)
        self._faults = faults

    def xSync(self, flags: int) -> None:
        self._faults.strike("sync")
        super().xSync(flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._faults.strike("write")
        super().xWrite(data, offset)


class Faults(apsw.VFS):
    """The system's files, which fail as told."""

    def __init__(self, system: str) -> None:
        self.system = system
        self.failing: dict[str, type[apsw.Error]] = {}
        super().__init__("faulty", system, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        assert name is not None
        return FaultyFile(name, flags, self)

    def strike(self, operation: str) -> None:
        error = self.failing.get(operation)
        if error is not None:
            raise error(f"{operation} failed")


@pytest.fixture
def faults() -> Generator[Faults]:
    [system, *_] = apsw.vfs_names()
    faulty = Faults(system)
    yield faulty
    faulty.unregister()
    apsw.set_default_vfs(system)


async def test_a_failed_sync_leaves_the_outcome_open_until_recovered(
    faults: Faults, path: Path
) -> None:
    async with open_sqlite(path, namespaces=[SPACE]) as database:
        await database.log.create("p", {"s": [{"n": 1}]})
        faults.failing["sync"] = apsw.IOError
        with pytest.raises(StreamBroken, match="not known"):
            await database.log.append("p", "s", [{"n": 2}], expected=1)
        faults.failing.clear()
        last, damage = await database.log.recover("p", "s")
        assert (last, damage) == (1, ())
        assert await database.log.append("p", "s", [{"n": 2}], expected=last) == 2
        await database.check()


async def test_a_failed_write_fails_every_write_of_the_commit(faults: Faults, path: Path) -> None:
    async with open_sqlite(path, namespaces=[SPACE]) as database:
        faults.failing["write"] = apsw.IOError
        failed: list[str] = []

        async def put(key: str) -> None:
            try:
                await database.records.set("space", Record(key, {"kind": 1}, 0))
            except StreamBroken:
                failed.append(key)

        async with trio.open_nursery() as nursery:
            for key in "abc":
                nursery.start_soon(put, key)
        assert sorted(failed) == ["a", "b", "c"]
        faults.failing.clear()
        assert await database.records.count("space", where={"kind": 1}) == 0
        await database.records.set("space", Record("d", {"kind": 1}, 0))
        await database.check()


async def test_a_full_disk_writes_nothing_and_is_usable_again(faults: Faults, path: Path) -> None:
    async with open_sqlite(path, namespaces=[SPACE]) as database:
        await database.log.create("p", {"s": []})
        faults.failing["write"] = apsw.FullError
        with pytest.raises(StorageFull):
            await database.log.append("p", "s", [{"n": 1}], expected=0)
        with pytest.raises(StorageFull):
            await database.blobs.put("p", "k", b"x" * 1_000_000)
        with pytest.raises(StorageFull):
            await database.search.put([Document("d", "g", {"text": "word " * 10_000})])
        faults.failing.clear()
        assert await database.log.append("p", "s", [{"n": 1}], expected=0) == 1
        await database.blobs.put("p", "k", b"x" * 1_000_000)
        assert (await database.search.query("word")).hits == ()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_space_is_told_from_other_failures(number: int) -> None:
    error = apsw.IOError("disk I/O error")
    told = translate(error, Path("a.db"), writing=True, errno_below=number)
    assert isinstance(told, StorageFull)
    told = translate(error, Path("a.db"), writing=False, errno_below=errno.EIO)
    assert isinstance(told, StorageFailed)
