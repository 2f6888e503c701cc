"""A full, failing or vanishing disk under a session that has written before."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.vaala.dao.conversing import all_items, begin, exchange, say, write
from tests.vaala.dao.crashing import Machine
from vaala.dao.entries import Entry
from vaala.dao.store import SessionLog, Store, open_store
from vaala_storage.errors import NotFound, StorageError, StorageFull, StreamBroken
from vaala_storage.faults import Fault


async def persist(session: SessionLog, batch: list[Entry]) -> None:
    """Append until it is there, as a session does that keeps what it could not write."""
    before = session.seq
    while session.seq == before:
        try:
            await session.append(batch)
        except StorageError:
            try:
                await session.recover()
            except StorageError:
                await trio.sleep(1)
        else:
            for entry in batch:
                session.state.apply(entry)


async def test_a_full_disk_loses_nothing_and_is_usable_again(autojump_clock: MockClock) -> None:
    """G3-1."""
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await say(session, "before")
        for fault in (Fault.FULL, Fault.QUOTA, Fault.SHORT):
            machine.files.plan("write", fault)
            before = session.seq
            with pytest.raises(StorageFull):
                await session.append(exchange("no space", "y", at=90, number=90))
            assert session.seq == before
            assert len((await session.items()).items) == 2
        await say(session, "after")
        assert [item.at for item in await all_items(session)] == [1, 2, 3, 4]
        assert (await log.open_session(log.id)).state == session.state


async def test_a_failed_sync_is_told_and_found_out(autojump_clock: MockClock) -> None:
    """G3-2."""
    machine = Machine()
    async with machine.store() as store:
        _, session = await begin(store)
        await say(session, "before")
        await say(session, "and again")
        machine.files.plan("sync_data", Fault.IO)
        batch = exchange("lost?", "y", at=5, number=50)
        with pytest.raises(StreamBroken):
            await session.append(batch)
        state = await session.recover()
        assert state is session.state
        assert state.head.last_at == 4
        await write(session, batch)
        assert [item.at for item in await all_items(session)] == [1, 2, 3, 4, 5, 6]


async def test_a_directory_that_vanishes_is_told(tmp_path: Path) -> None:
    """G3-4."""
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "before")
        other, second = await begin(store)
        await say(second, "untouched")
        shutil.rmtree(tmp_path / "conversations" / log.id)
        with pytest.raises(StorageError):
            await session.append(exchange("gone", "y", at=3, number=3))
        with pytest.raises((NotFound, StreamBroken)):
            await session.recover()
        await log.close()
        await say(second, "still works")
        assert [row.id for row in (await store.list()).rows] == [other.id]


async def opened(store: Store, conversation_id: str) -> SessionLog:
    return await (await store.open(conversation_id)).open_session(conversation_id)


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_random_faults_and_crashes_keep_every_entry_once(seed: int) -> None:
    """What an append returned for is there after a crash, once and in order."""

    async def main() -> None:
        machine = Machine(Random(seed))
        number = 0
        conversation_id = ""
        for round_ in range(3):
            async with machine.store() as store:
                if conversation_id:
                    session = await opened(store, conversation_id)
                else:
                    log, session = await begin(store)
                    conversation_id = log.id
                machine.files.rate = 0.1
                for _ in range(6):
                    number += 1
                    await persist(session, exchange("q", "a", at=2 * number, number=number))
                machine.files.rate = 0
                machine.lose_index()
            machine.restart(seed + round_)
        async with machine.store() as store:
            session = await opened(store, conversation_id)
            assert [item.at for item in await all_items(session)] == list(range(2, 2 * number + 2))
            assert session.state.head.last_at == 2 * number + 1

    trio.run(main, clock=MockClock(autojump_threshold=0))
