"""What a killed run leaves: entries that were never synced, marks, and rows that say `running`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.dao.conversing import begin, say
from tests.vaala.dao.crashing import Machine, rows_of
from vaala.dao.index_db import NAMESPACES, OPEN_MARKS
from vaala.dao.store import ConversationLog, SessionLog, Store
from vaala.testing.disk import SimulatedDisk
from vaala_protocol.ids import new_id
from vaala_protocol.settings import Settings
from vaala_protocol.state import SessionInfo
from vaala_storage.faults import Fault
from vaala_storage.records import RecordStorage
from vaala_storage.staged import StagedStorage


async def new_child(log: ConversationLog) -> SessionLog:
    info = SessionInfo(id=new_id(), agent="a", created_at=9, settings=Settings(), parent=log.id)
    return await log.create_session(info)


async def killed_before_a_sync(disk: SimulatedDisk) -> tuple[str, str]:
    """Return a conversation and its child, whose last entries the killed run did not sync."""
    async with disk.until_it_dies(), disk.store() as store:
        log, session = await begin(store)
        await say(session, "hello")
        child = await new_child(log)
        await store.list()
        disk.cut_power(1)  # the write comes through, its sync does not
        await say(child, "unsynced")
    disk.restart(power_was_lost=False)
    return log.id, child.session_id


async def lose_power(disk: SimulatedDisk) -> None:
    disk.stop_now()
    async with disk.until_it_dies():
        await trio.sleep_forever()
    disk.restart(power_was_lost=True)


@pytest.mark.parametrize("seed", range(10))
async def test_the_index_claims_nothing_that_a_power_loss_can_take(
    seed: int, autojump_clock: MockClock
) -> None:
    """G3-3: nobody opens the conversation again."""
    disk = SimulatedDisk(Random(seed))
    await killed_before_a_sync(disk)
    async with disk.store() as store:
        await store.settled()
    await lose_power(disk)
    async with disk.store() as store:
        await store.settled()
    new = disk.with_new_index()
    async with new.store() as store:
        await store.settled()
    assert await rows_of(disk.index.records) == await rows_of(new.index.records)
    assert await disk.index.records.count(OPEN_MARKS) == 0


def mark_tells(disk: SimulatedDisk, store: Store) -> None:
    """Nothing more is wrong."""


def index_fails(disk: SimulatedDisk, store: Store) -> None:
    store._db.lose("it cannot be read")


def index_is_new(disk: SimulatedDisk, store: Store) -> None:
    disk.index = StagedStorage(namespaces=NAMESPACES)
    store._db.use(disk.index.records, disk.index.search)
    store._db.made_new.set()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("trouble", [mark_tells, index_fails, index_is_new])
async def test_what_an_opened_conversation_tells_stays(
    seed: int,
    trouble: Callable[[SimulatedDisk, Store], None],
    autojump_clock: MockClock,
    warnings_logged: list[str],
) -> None:
    """The work at the start could not make it durable: opening does it."""
    disk = SimulatedDisk(Random(seed))
    conversation_id, child_id = await killed_before_a_sync(disk)
    disk.files.plan("open_read", Fault.IO)
    async with disk.store() as store:
        await store.settled()
        assert await disk.index.records.count(OPEN_MARKS) == 1
        assert "is settled at the next start" in warnings_logged[0]
        trouble(disk, store)
        child = await (await store.open(conversation_id)).open_session(child_id)
        told = child.seq
    await lose_power(disk)
    async with disk.store() as store:
        child = await (await store.open(conversation_id)).open_session(child_id)
        assert child.seq == told > 3


async def test_a_disk_that_takes_nothing_is_still_read(autojump_clock: MockClock) -> None:
    disk = SimulatedDisk(Random(1))
    conversation_id, child_id = await killed_before_a_sync(disk)
    async with disk.store() as store:
        for _ in range(2):
            disk.files.plan("sync_directory", Fault.READ_ONLY)
        child = await (await store.open(conversation_id)).open_session(child_id)
        assert child.seq > 3


class _MarksLater(Machine):
    """An index whose marks cannot be listed until ``go`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = trio.Event()

    def find_index(self) -> None:
        records: Any = _ListsLater(self.index.records, self.go)
        self.db.use(records, self.index.search)


class _ListsLater:
    def __init__(self, inner: RecordStorage, go: trio.Event) -> None:
        self._inner = inner
        self._go = go

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def list(self, namespace: str, *args: Any, **how: Any) -> Any:
        if namespace == OPEN_MARKS:
            await self._go.wait()
        return await self._inner.list(namespace, *args, **how)


async def test_a_mark_is_seen_by_whoever_writes_over_it(autojump_clock: MockClock) -> None:
    """The conversation is opened and written before the work at the start has come to it."""
    machine = _MarksLater()
    machine.go.set()
    async with machine.store() as store:
        log, session = await begin(store)
        await say(session, "hello")
        child = await new_child(log)
        await store.list()
        machine.lose_index()
        await say(child, "unseen")
    machine.go = trio.Event()
    async with machine.store() as store:
        log = await store.open(log.id)
        await say(await log.open_session(log.id), "again")
        machine.go.set()
        await store.settled()
        (found,) = (await store.search("unseen")).results
        assert found.conversation.id == log.id


async def running(store: Store) -> str:
    """Begin a conversation whose turn runs; return its id."""
    log, session = await begin(store)
    turn = {"t": "turn", "id": "t", "state": "running", "startedAt": 5, "settings": {}}
    await session.append([turn])
    return log.id


async def statuses(store: Store) -> list[str]:
    return [row.info.status for row in (await store.list()).rows]


async def test_a_mark_that_could_not_be_written_is_written_later(
    autojump_clock: MockClock,
) -> None:
    machine = Machine()
    async with machine.store() as store:
        await store.settled()
        machine.lose_index()
        await running(store)
        machine.find_index()
        assert await statuses(store) == ["running"]
        machine.lose_index()
    async with machine.store() as store:
        await store.settled()
        assert await statuses(store) == ["idle"]


async def test_an_index_that_is_new_gets_the_marks_of_what_is_open(
    autojump_clock: MockClock,
) -> None:
    machine = Machine()
    async with machine.store() as store:
        await store.settled()
        await running(store)
        assert await statuses(store) == ["running"]
        machine.index = StagedStorage(namespaces=NAMESPACES)
        machine.find_index()
        machine.db.made_new.set()
        await wait_all_tasks_blocked()
        assert await statuses(store) == ["running"]
        machine.lose_index()
    async with machine.store() as store:
        await store.settled()
        assert await statuses(store) == ["idle"]


async def test_a_deleted_conversation_leaves_no_mark(autojump_clock: MockClock) -> None:
    machine = Machine()
    async with machine.store() as store:
        await store.settled()
        machine.lose_index()
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
        await store.delete(log.id)
        machine.find_index()
        assert await statuses(store) == []
        assert await machine.index.records.count(OPEN_MARKS) == 0
