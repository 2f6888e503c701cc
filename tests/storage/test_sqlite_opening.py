"""Opening a SQLite database: its file, its version, damage, and reading beside a writer."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import apsw
import pytest
import trio

from vaala_storage import NotFound, ReadOnly, StorageCorrupt, StorageFailed
from vaala_storage.records import Namespace, Query, Record
from vaala_storage.search import Document
from vaala_storage.sqlite import move_aside, open_sqlite
from vaala_storage.sqlite.limits import CHECKED_AT_OPEN_BYTES_MAX

SPACE = Namespace("space", ("kind",))
PAGE_BYTES = 4096


def raw(path: Path, sql: str) -> list[object]:
    """Run a statement on the file as another program would."""
    connection = apsw.Connection(str(path))
    try:
        return [row[0] for row in connection.execute(sql)]
    finally:
        connection.close()


def files(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def size_of(path: Path) -> int:
    return path.stat().st_size


def damage_page(path: Path, index: int) -> None:
    with path.open("r+b") as file:
        file.seek(index * PAGE_BYTES)
        file.write(b"\xff" * PAGE_BYTES)


@pytest.fixture(scope="module")
def large_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.db"
    trio.run(partial(fill, path, count=12_000, pad=800))
    assert path.stat().st_size > CHECKED_AT_OPEN_BYTES_MAX
    return path


@pytest.fixture
def large(large_once: Path, tmp_path: Path) -> Path:
    """A database that is too large to be checked whole at open."""
    return Path(shutil.copy(large_once, tmp_path / "a.db"))


async def fill(path: Path, count: int = 1, pad: int = 200) -> None:
    async with open_sqlite(path, namespaces=[SPACE], sync="off") as database:
        records = [Record(f"{n:06}", {"kind": n % 7, "pad": "x" * pad}, n) for n in range(count)]
        await database.records.mset("space", records)
        await database.search.put([Document("d", "g", {"text": "some words"})])


async def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    old_mask = os.umask(0)
    try:
        async with open_sqlite(path, namespaces=[SPACE]) as database:
            await database.records.set("space", Record("a", {}, 0))
            assert database.wal
            assert files(tmp_path) == ["new.db", "new.db-shm", "new.db-wal"]
            assert {os.stat(tmp_path / name).st_mode & 0o777 for name in files(tmp_path)} == {0o600}
    finally:
        os.umask(old_mask)
    assert files(tmp_path) == ["new.db"]


async def test_the_mode_of_an_old_file_is_tightened(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    await fill(path)
    path.chmod(0o644)
    async with open_sqlite(path):
        assert path.stat().st_mode & 0o777 == 0o600


async def test_what_was_written_is_there_when_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await fill(path, count=3)
    async with open_sqlite(path, namespaces=[SPACE]) as database:
        assert await database.records.count("space", where={"kind": 2}) == 1
        assert len((await database.search.query("words")).hits) == 1
        await database.check()


@pytest.mark.parametrize("size", [1, 50, 600, 5000, 100_000])
async def test_garbage_is_told_and_makes_room(tmp_path: Path, size: int) -> None:  # G4-1
    path = tmp_path / "metadata.db"
    path.write_bytes(b"garbage!" * (size // 8 + 1))
    with pytest.raises(StorageCorrupt, match=r"metadata\.db"):
        async with open_sqlite(path):
            raise AssertionError
    kept = move_aside(path)
    assert kept.name.startswith("metadata.db.corrupt-")
    assert kept.read_bytes().startswith(b"garbage!")
    await fill(path)
    assert files(tmp_path) == sorted(["metadata.db", kept.name])


@pytest.mark.parametrize("place", [100, 4096 + 8, 3 * 4096])
async def test_a_damaged_page_of_a_small_database_is_found_at_open(
    tmp_path: Path, place: int
) -> None:
    path = tmp_path / "a.db"
    await fill(path, count=500)
    data = bytearray(path.read_bytes())
    data[place : place + 64] = os.urandom(64)
    path.write_bytes(data)
    with pytest.raises(StorageCorrupt):
        async with open_sqlite(path, namespaces=[SPACE]):
            raise AssertionError


async def test_a_large_database_that_was_cut_short_is_found_at_open(large: Path) -> None:
    os.truncate(large, size_of(large) - (64 << 10))
    with pytest.raises(StorageCorrupt):
        async with open_sqlite(large, namespaces=[SPACE]):
            raise AssertionError


async def test_damage_deep_in_a_large_database_is_found_by_a_check(large: Path) -> None:
    damage_page(large, size_of(large) // 2 // PAGE_BYTES)
    async with open_sqlite(large, namespaces=[SPACE]) as database:
        with pytest.raises(StorageCorrupt):
            await database.check()


async def test_damage_met_by_a_call_is_told_as_such(large: Path) -> None:
    [root] = raw(large, "SELECT rootpage FROM sqlite_schema WHERE name = 'records_by_time'")
    assert isinstance(root, int)
    damage_page(large, root - 1)
    async with open_sqlite(large, namespaces=[SPACE]) as database:
        with pytest.raises(StorageCorrupt):
            await database.records.list("space", Query(order="updated_at"))
        assert await database.records.get("space", "000001") is not None


async def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    raw(path, "CREATE TABLE cookies (a)")
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(StorageCorrupt, match="not a database of vaala"):
        async with open_sqlite(path):
            raise AssertionError
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_version_is_left_alone(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "a.db"
    await fill(path)
    raw(path, "PRAGMA user_version = 99")
    with pytest.raises(ReadOnly, match="version 99"):
        async with open_sqlite(path, read_only=read_only):
            raise AssertionError


async def test_moving_aside_takes_the_write_ahead_log_along(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await fill(path)
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"a.db{suffix}").write_bytes(b"left by a crash")
    first = move_aside(path)
    assert files(tmp_path) == [first.name, f"{first.name}-shm", f"{first.name}-wal"]
    await fill(path)
    assert move_aside(path) != first


async def test_a_reader_sees_what_the_writer_commits(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_sqlite(path, namespaces=[SPACE]) as writer:
        await writer.records.set("space", Record("a", {"kind": 1}, 0))
        async with open_sqlite(path, namespaces=[SPACE], read_only=True) as reader:
            assert await reader.records.count("space") == 1
            await writer.records.set("space", Record("b", {"kind": 1}, 0))
            assert await reader.records.count("space", where={"kind": 1}) == 2
            with pytest.raises(ReadOnly, match="opened for reading"):
                await reader.records.set("space", Record("c", {}, 0))
            with pytest.raises(ReadOnly):
                await reader.search.put([])
            with pytest.raises(ReadOnly):
                await reader.log.create("p", {"s": []})


async def test_a_reader_reads_what_a_killed_writer_left(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    killed = tmp_path / "killed.db"
    async with open_sqlite(path, namespaces=[SPACE]) as writer:
        await writer.records.set("space", Record("a", {"kind": 1}, 0))
        for suffix in ("", "-wal"):  # as they stand on disk while it runs
            killed.with_name(f"killed.db{suffix}").write_bytes(
                path.with_name(f"a.db{suffix}").read_bytes()
            )
    async with open_sqlite(killed, namespaces=[SPACE], read_only=True) as reader:
        assert await reader.records.get("space", "a") is not None
    async with open_sqlite(killed, namespaces=[SPACE]) as writer:
        assert await writer.records.get("space", "a") is not None


async def test_a_missing_database_is_not_made_for_reading(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"none\.db"):
        async with open_sqlite(tmp_path / "none.db", read_only=True):
            raise AssertionError
    assert files(tmp_path) == []


async def test_a_place_that_cannot_hold_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="missing"):
        async with open_sqlite(tmp_path / "missing" / "a.db"):
            raise AssertionError
    with pytest.raises(StorageFailed):
        async with open_sqlite(tmp_path):
            raise AssertionError


async def test_a_reader_does_without_an_index_only_as_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await fill(path)
    for namespace in (Namespace("unknown"), Namespace("space", ("kind", "new"))):
        with pytest.raises(ReadOnly, match=f"no index for {namespace.name}"):
            async with open_sqlite(path, namespaces=[namespace], read_only=True):
                raise AssertionError


async def test_a_new_field_is_indexed_and_a_dropped_one_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_sqlite(path, namespaces=[SPACE]) as database:
        await database.records.set("space", Record("a", {"kind": 1, "tags": ["x", "y"]}, 5))
    wider = Namespace("space", ("tags",))
    async with open_sqlite(path, namespaces=[wider]) as database:
        tagged = Query(order="updated_at", where={"tags": "y"})
        page = await database.records.list("space", tagged)
        assert [record.key for record in page.records] == ["a"]
        with pytest.raises(ValueError, match="kind"):
            await database.records.count("space", where={"kind": 1})
        await database.records.set("space", Record("a", {"kind": 2, "tags": []}, 6))
    async with open_sqlite(path, namespaces=[SPACE]) as database:
        assert await database.records.count("space", where={"kind": 1}) == 0
        assert await database.records.count("space", where={"kind": 2}) == 1


async def test_where_write_ahead_logging_cannot_engage_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await fill(path)
    raw(path, "PRAGMA journal_mode = delete")
    raw(path, "UPDATE record_writes SET count = count + 1")  # a first commit in that mode
    other = apsw.Connection(str(path))
    other.execute("BEGIN; SELECT count(*) FROM records").fetchall()
    async with open_sqlite(path, namespaces=[SPACE], busy_s=0.01) as database:
        assert not database.wal
        assert await database.records.count("space") == 1
        other.execute("COMMIT")
        other.close()
        await database.records.set("space", Record("b", {}, 0))
        assert await database.records.count("space") == 2


async def test_a_cache_offers_no_log(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "a.db", sync="normal") as database:
        for store in ("log", "blobs"):
            with pytest.raises(ValueError, match='sync="full"'):
                getattr(database, store)


async def test_what_a_killed_blob_writer_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_sqlite(path) as database:
        await database.blobs.put("p", "k", b"kept")
    raw(path, "INSERT INTO blobs VALUES (7, 3, 0)")
    raw(path, "INSERT INTO blob_parts VALUES (7, 0, x'010203')")
    async with open_sqlite(path) as database:
        assert await database.blobs.get("p", "k") == b"kept"
    assert raw(path, "SELECT count(*) FROM blobs") == [1]
    assert raw(path, "SELECT count(*) FROM blob_parts") == [1]


async def test_making_durable_is_a_commit(tmp_path: Path) -> None:
    """Its sync is that of the log, where the commits of a killed process are."""
    path, log = tmp_path / "a.db", tmp_path / "a.db-wal"
    async with open_sqlite(path) as database:
        await database.log.create("p", {"s": [{"n": 1}]})
        before = log.read_bytes()
        await database.log.last("p", "s")
        assert log.read_bytes() == before
        await database.log.make_durable("p")
        assert log.read_bytes() != before
