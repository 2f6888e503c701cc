"""Moving a staged conversation to durable storage in one step, and the budget of the stage."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from vaala_storage import (
    AlreadyExists,
    Entry,
    LogStorage,
    NotFound,
    StorageError,
    StorageFull,
    StreamBroken,
)
from vaala_storage.records import Namespace, Record
from vaala_storage.search import Document
from vaala_storage.sqlite import SqliteDatabase, open_sqlite
from vaala_storage.staged import StagedStorage, hand_over
from vaala_storage.staged.blobs import StagedBlobs
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.log import StagedLog

MESSAGE: Mapping[str, Sequence[Entry]] = {"root": [{"message": "hello"}]}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[SqliteDatabase]:
    async with open_sqlite(tmp_path / "a.db") as opened:
        yield opened


@pytest.fixture
async def staged() -> StagedStorage:
    storage = StagedStorage()
    await storage.log.create("c", {"metadata": [{"title": "t"}], "root": [{"header": 1}]})
    await storage.blobs.put("c", "image", b"bytes")
    return storage


async def everything(log: LogStorage, path: str) -> dict[str, list[Entry]]:
    return {
        name: [stored.entry for stored in (await log.read(path, name)).entries]
        for name in await log.streams(path)
    }


AFTER: dict[str, list[Entry]] = {
    "metadata": [{"title": "t"}],
    "root": [{"header": 1}, {"message": "hello"}],
}
BEFORE: dict[str, list[Entry]] = {"metadata": [{"title": "t"}], "root": [{"header": 1}]}


async def test_a_path_moves_whole_with_what_is_added(
    staged: StagedStorage, database: SqliteDatabase
) -> None:
    await hand_over(staged, "c", database.log, database.blobs, adding=MESSAGE)
    assert await everything(database.log, "c") == AFTER
    assert await database.blobs.get("c", "image") == b"bytes"
    assert (await staged.log.paths()).paths == ()
    with pytest.raises(NotFound):
        await staged.blobs.get("c", "image")
    assert staged.bytes_used == 0


async def test_what_is_added_may_begin_a_stream(
    staged: StagedStorage, database: SqliteDatabase
) -> None:
    await hand_over(staged, "c", database.log, database.blobs, adding={"child": [{"header": 2}]})
    assert await everything(database.log, "c") == BEFORE | {"child": [{"header": 2}]}


async def test_a_path_that_is_not_staged_cannot_be_moved(
    staged: StagedStorage, database: SqliteDatabase
) -> None:
    with pytest.raises(NotFound):
        await hand_over(staged, "other", database.log, database.blobs)


class Target(StagedLog):
    """A log whose `create` fails as told, before or after it has done its work."""

    def __init__(self) -> None:
        super().__init__(Budget(1 << 20))
        self.before: StorageError | None = None
        self.after: StorageError | None = None
        self.entered = trio.Event()
        self.released = trio.Event()
        self.released.set()

    async def create(self, path: str, streams: Mapping[str, Sequence[Entry]]) -> None:
        self.entered.set()
        await self.released.wait()
        if self.before is not None:
            raise self.before
        await super().create(path, streams)
        if self.after is not None:
            raise self.after


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def blobs() -> StagedBlobs:
    return StagedBlobs(Budget(1 << 20))


async def test_a_failed_create_leaves_it_staged_and_can_be_repeated(
    staged: StagedStorage, target: Target, blobs: StagedBlobs
) -> None:
    target.before = StorageFull("no space")
    for _ in range(2):
        with pytest.raises(StorageFull):
            await hand_over(staged, "c", target, blobs, adding=MESSAGE)
        assert await everything(staged.log, "c") == BEFORE
        assert (await target.paths()).paths == ()
    target.before = None
    await hand_over(staged, "c", target, blobs, adding=MESSAGE)
    assert await everything(target, "c") == AFTER
    assert await blobs.get("c", "image") == b"bytes"


async def test_an_outcome_that_was_not_known_is_settled_by_a_repeat(
    staged: StagedStorage, target: Target, blobs: StagedBlobs
) -> None:
    target.after = StreamBroken("silent")
    with pytest.raises(StreamBroken):
        await hand_over(staged, "c", target, blobs, adding=MESSAGE)
    assert await everything(staged.log, "c") == BEFORE
    await hand_over(staged, "c", target, blobs, adding=MESSAGE)
    assert await everything(target, "c") == AFTER
    assert (await staged.log.paths()).paths == ()


@pytest.mark.parametrize(
    "there",
    [
        BEFORE,
        AFTER | {"root": [{"header": 1}, {"message": "other"}]},
        AFTER | {"root": [*AFTER["root"], {"more": 1}]},
        AFTER | {"child": []},
    ],
)
async def test_another_path_in_its_place_is_never_taken_for_it(
    staged: StagedStorage,
    target: Target,
    blobs: StagedBlobs,
    there: Mapping[str, Sequence[Entry]],
) -> None:
    await target.create("c", there)
    with pytest.raises(AlreadyExists):
        await hand_over(staged, "c", target, blobs, adding=MESSAGE)
    assert await everything(target, "c") == there
    assert await everything(staged.log, "c") == BEFORE


async def test_appends_wait_and_then_find_the_path_gone(
    staged: StagedStorage, target: Target, blobs: StagedBlobs
) -> None:
    target.released = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hand_over, staged, "c", target, blobs)
        await target.entered.wait()
        nursery.start_soon(refused_append, staged)
        await wait_all_tasks_blocked()
        target.released.set()
    assert await everything(target, "c") == BEFORE


async def refused_append(staged: StagedStorage) -> None:
    with pytest.raises(NotFound):
        await staged.log.append("c", "root", [{"late": 1}], expected=1)


async def test_appends_go_on_when_the_move_failed(
    staged: StagedStorage, target: Target, blobs: StagedBlobs
) -> None:
    target.released = trio.Event()
    target.before = StorageFull("no space")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(failing_move, staged, target, blobs)
        await target.entered.wait()
        nursery.start_soon(append, staged)
        await wait_all_tasks_blocked()
        target.released.set()
    assert await staged.log.last("c", "root") == 2


async def failing_move(staged: StagedStorage, target: Target, blobs: StagedBlobs) -> None:
    with pytest.raises(StorageFull):
        await hand_over(staged, "c", target, blobs)


async def append(staged: StagedStorage) -> None:
    assert await staged.log.append("c", "root", [{"next": 1}], expected=1) == 2


async def test_a_cancel_on_the_way_does_not_leave_it_half_moved(
    staged: StagedStorage, target: Target, blobs: StagedBlobs
) -> None:
    target.released = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hand_over, staged, "c", target, blobs)
        await target.entered.wait()
        nursery.cancel_scope.cancel()
        target.released.set()
    assert await everything(target, "c") == BEFORE
    assert (await staged.log.paths()).paths == ()


async def test_all_stores_share_one_budget() -> None:
    storage = StagedStorage(namespaces=[Namespace("n")], bytes_max=10_000)
    text = "x" * 3000
    await storage.log.create("p", {"s": [{"x": text}]})
    await storage.records.set("n", Record("k", {"x": text}, 0))
    await storage.blobs.put("p", "k", text.encode())
    with pytest.raises(StorageFull, match="10000 bytes"):
        await storage.log.append("p", "s", [{"x": text}], expected=1)
    with pytest.raises(StorageFull):
        await storage.records.set("n", Record("other", {"x": text}, 0))
    with pytest.raises(StorageFull):
        await storage.search.put([Document("d", "g", {"text": text})])
    async with storage.blobs.writer("p", "new") as writer:
        with pytest.raises(StorageFull):
            await writer.write(text.encode())
    assert await storage.log.last("p", "s") == 1
    await storage.records.set("n", Record("k", {"x": text}, 1))  # takes the place of the old


async def test_what_is_removed_gives_its_bytes_back() -> None:
    storage = StagedStorage(namespaces=[Namespace("n")])
    await storage.log.create("p", {"s": [{"x": 1}], "t": [{"x": 1}]})
    await storage.log.append("p", "s", [{"x": 2}], expected=1)
    await storage.log.create("p/q", {"s": [{"x": 1}]})
    await storage.records.mset("n", [Record(key, {"x": 1}, 0) for key in "abc"])
    await storage.records.set("n", Record("a", {"x": "longer"}, 0))
    await storage.blobs.put("p", "k", b"bytes")
    await storage.blobs.link("p", "q")
    async with storage.blobs.writer("p", "abandoned") as writer:
        await writer.write(b"bytes")
    await storage.search.put([Document(key, "g", {"text": "word"}) for key in "abc"])
    await storage.search.put([Document("a", "g", {"text": "another word"})])
    assert storage.bytes_used > 0
    await storage.log.delete_stream("p", "t")
    await storage.log.delete_path("p")
    await storage.records.delete("n", "a")
    await storage.records.delete_range("n", "", None)
    for path in "pq":
        await storage.blobs.delete_path(path)
    await storage.search.delete(["a"])
    await storage.search.delete_group("g")
    assert storage.bytes_used == 0


async def test_a_long_search_lets_other_tasks_run() -> None:
    storage = StagedStorage()
    text = "word " * 50_000
    await storage.search.put([Document(str(n), "g", {"text": text}) for n in range(20)])
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        page = await storage.search.query("word nothing")
        nursery.cancel_scope.cancel()
    assert page.hits == ()
    assert turns >= 4
