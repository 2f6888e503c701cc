"""The index is a pure function of the log, however it was made and whatever happened to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import cast

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.vaala.dao.conversing import begin, listed, say, tell
from tests.vaala.dao.crashing import Machine, contents, made_anew
from tests.vaala.dao.stories import Story
from vaala.dao.index_db import OPEN_MARKS
from vaala.dao.store import ConversationLog, SessionLog, Store
from vaala_protocol.ids import new_id
from vaala_protocol.settings import Settings
from vaala_protocol.state import SessionInfo
from vaala_storage.errors import StorageCorrupt, StorageFailed
from vaala_storage.records import Record, RecordStorage


class Life:
    """Random work on several conversations of one store."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = Random(seed)
        self.open: list[tuple[ConversationLog, SessionLog, Story]] = []

    async def begin(self) -> None:
        log, session = await begin(self.store)
        self.open.append((log, session, Story(self.random.randrange(10**9), log.id)))
        await tell(session, self.open[-1][2], 1)

    async def act(self) -> None:
        log, session, story = self.random.choice(self.open)
        match self.random.randrange(8):
            case 0:
                await log.update(title=f"title {self.random.randrange(99)}")
            case 1:
                await log.update(archived=True, tags=("a", "b"))
            case 2:
                await self.store.list()
            case 3:
                await self.child(log)
            case 4:
                await self.begin()
            case _:
                await tell(session, story, 1)

    async def child(self, log: ConversationLog) -> None:
        info = SessionInfo(id=new_id(), agent="a", created_at=9, settings=Settings(), parent=log.id)
        child = await log.create_session(info)
        await tell(child, Story(self.random.randrange(10**9), info.id), 1)


def run(main: Callable[..., Awaitable[object]], *args: object) -> None:
    trio.run(main, *args, clock=MockClock(autojump_threshold=0))


@settings(max_examples=12)
@given(st.integers(0, 10**9))
def test_the_live_index_equals_a_reindex(seed: int) -> None:
    async def main() -> None:
        machine = Machine()
        async with machine.store() as store:
            life = Life(store, seed)
            await life.begin()
            for _ in range(9):
                await life.act()
            for log, _, _ in life.open:
                await log.close()
        rows, _ = live = await contents(machine.index)
        assert len(rows) == len(life.open)
        assert live == await made_anew(machine)
        async with machine.store() as store:
            report = await store.reindex()
            assert (report.conversations, report.removed) == (len(rows), 0)
        assert live == await contents(machine.index)

    run(main)


@settings(max_examples=20)
@given(st.integers(0, 10**9))
def test_a_crash_between_append_and_index_heals(seed: int) -> None:
    """G3-3: what the index missed is in it soon after the next start."""

    async def main() -> None:
        machine = Machine()
        async with machine.store() as store:
            life = Life(store, seed)
            await life.begin()
            await life.begin()
            for _ in range(life.random.randrange(8)):
                await life.act()
            machine.lose_index()
            for log, session, story in life.open:
                await tell(session, story, life.random.randrange(3))
                if life.random.random() < 0.5:
                    await log.update(title="title unseen")
        machine.restart(seed)
        async with machine.store() as store:
            await store.settled()
            found = await contents(machine.index)
            marks = await machine.index.records.count(OPEN_MARKS)
        assert found == await made_anew(machine)
        assert marks == 0

    run(main)


async def test_nothing_says_running_for_ever(autojump_clock: MockClock) -> None:
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await session.append(
            [
                {"t": "turn", "id": "t", "state": "running", "startedAt": 5, "settings": {}},
                {"t": "item", "kind": "approval", "id": "p", "at": 1, "createdAt": 1, "step": 1},
            ]
        )
        (row,) = (await store.list()).rows
        assert row.info.status == "waitingApproval"
        await session.append([{"t": "item", "id": "p", "state": "answered"}])
        (row,) = (await store.list()).rows
        assert row.info.status == "running"
        machine.lose_index()
    async with machine.store() as store:
        await store.settled()
        (row,) = (await store.list()).rows
        assert row.info.status == "idle"
        assert row.id == log.id


async def test_a_failed_turn_shows_until_the_next(autojump_clock: MockClock) -> None:
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await say(session, "hello")
        failed = {"t": "turn", "id": "t", "state": "failed", "startedAt": 5, "settings": {}}
        await session.append([failed])
        assert (await store.list()).conversations[0].status == "failed"
        await log.close()
        assert (await store.list()).conversations[0].status == "failed"


async def test_an_index_that_fails_never_fails_an_append(
    autojump_clock: MockClock, warnings_logged: list[str]
) -> None:
    """G3-3."""
    machine = Machine()
    async with machine.store() as store:
        _, session = await begin(store)
        machine.lose_index()
        await say(session, "written all the same")
        with pytest.raises(StorageFailed):
            await store.list()
        assert any("catches up" in text for text in warnings_logged)
        machine.find_index()
        await trio.sleep(120)
        assert (await store.list()).conversations[0].title == "written all the same"
        assert (await store.search("same")).results


async def test_a_list_tells_that_the_index_takes_nothing_until_it_does(
    autojump_clock: MockClock,
) -> None:  # G3-3
    machine = Machine()
    async with machine.store() as store:
        _, session = await begin(store)
        await say(session, "before")
        assert (await store.list()).complete
        machine.db.use(cast("RecordStorage", _Full(machine.index.records)), machine.index.search)
        _, session = await begin(store)
        await say(session, "behind")
        page = await store.list()
        assert (len(page.rows), page.complete) == (1, False)
        assert not (await store.search("before")).complete
        machine.find_index()
        page = await store.list()
        assert (len(page.rows), page.complete) == (2, True)


class _Full:
    """Records on a full disk: all can be read, nothing is written."""

    def __init__(self, records: RecordStorage) -> None:
        self._records = records

    def __getattr__(self, name: str) -> object:
        return getattr(self._records, name)

    async def mset(self, *_: object) -> None:
        raise StorageFailed("disk I/O error")


async def test_a_row_without_its_conversation_and_the_reverse_heal(
    autojump_clock: MockClock,
) -> None:
    """G4-2."""
    machine = Machine()
    async with machine.store() as store:
        kept, session = await begin(store)
        await say(session, "kept")
        gone, session = await begin(store)
        await say(session, "gone")
        await kept.close()
        await gone.close()
    async with machine.log() as log:
        await log.delete_path(gone.id)
        entries = await log.read(kept.id, "main")
        metadata = await log.read(kept.id, "metadata")
        await log.create(
            "copied-in",
            {
                "main": [stored.entry for stored in entries.entries],
                "metadata": [stored.entry for stored in metadata.entries],
            },
        )
    async with machine.store() as store:
        assert sorted(await listed(store)) == sorted([kept.id, gone.id])
        await store.settled()
        assert sorted(await listed(store)) == sorted([kept.id, "copied-in"])
        found = {result.conversation.id for result in (await store.search("kept")).results}
        assert found == {kept.id, "copied-in"}
        assert (await store.search("gone")).results == ()


async def test_opening_finds_a_row_that_is_behind(autojump_clock: MockClock) -> None:
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await say(session, "first")
        await log.close()
    async with machine.log() as files:
        # What a power loss leaves that took the last rows and the mark.
        entry = {"t": "item", "kind": "user_message", "id": "z", "at": 99, "createdAt": 1,
                 "content": [{"type": "text", "text": "unnoticed"}]}  # fmt: skip
        await files.append(log.id, "main", [entry], expected=session.seq)
    async with machine.store() as store:
        assert (await store.search("unnoticed")).results == ()
        await (await store.open(log.id)).open_session(log.id)
        (found,) = (await store.search("unnoticed")).results
        assert found.item_id == "z"


async def test_a_row_that_knows_too_much_is_made_anew(autojump_clock: MockClock) -> None:
    """A device that lied about a sync can take back what the index has seen."""
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await say(session, "stays")
        await log.close()
        await store.list()
        before = await contents(machine.index)
        log = await store.open(log.id)
        session = await log.open_session(log.id)
        await say(session, "alpha lost")
        await log.close()
    async with machine.log() as files:
        page = await files.read(log.id, "main", before=session.seq - 5)
        await files.delete_stream(log.id, "main")
        kept = [stored.entry for stored in page.entries]
        await files.append(log.id, "main", kept, expected=0)
    async with machine.store() as store:
        await (await store.open(log.id)).open_session(log.id)
        await store.list()
        assert await contents(machine.index) == before
        assert (await store.search("lost")).results == ()


async def test_rows_of_another_version_are_made_anew(autojump_clock: MockClock) -> None:
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
    before = await contents(machine.index)
    old = Record(log.id, {"archived": False, "row": {"version": 0, "streams": 5}}, 1)
    await machine.index.records.set("conversations", old)
    async with machine.store() as store:
        await store.open(log.id)
        await store.list()
    assert await contents(machine.index) == before


async def test_what_is_gathered_is_bounded(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vaala.dao.index.INDEX_PENDING_BYTES_MAX", 2_000)
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await tell(session, Story(4, log.id), 6)
        await log.close()
    assert await contents(machine.index) == await made_anew(machine)


async def test_a_damaged_index_is_told_to_its_keeper(
    autojump_clock: MockClock, warnings_logged: list[str]
) -> None:
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await say(session, "hello")

        async def corrupt(*_: object) -> None:
            raise StorageCorrupt("page 7")

        machine.index.records.mset = corrupt  # type: ignore[method-assign,assignment] # a fault
        await say(session, "again")
        await trio.sleep(2)
        assert machine.db.corrupt.is_set()
        assert log.record.title == "hello"
    assert any("page 7" in text for text in warnings_logged)


@settings(max_examples=8)
@given(st.integers(0, 10**9))
def test_a_reindex_while_turns_run_misses_nothing(seed: int) -> None:
    """G5-4."""

    async def main() -> None:
        machine = Machine()
        async with machine.store() as store:
            life = Life(store, seed)
            await life.begin()
            for _ in range(4):
                await life.act()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.reindex)
                for _ in range(6):
                    await life.act()
            for log, _, _ in life.open:
                await log.close()
        assert await contents(machine.index) == await made_anew(machine)

    run(main)
