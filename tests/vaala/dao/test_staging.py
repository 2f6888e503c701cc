"""A conversation is nowhere but in memory until its first message is on disk with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from tests.vaala.dao.conversing import begin, exchange, files_below, listed, say, tell, write
from tests.vaala.dao.crashing import Machine
from tests.vaala.dao.stories import Story
from vaala.dao.entries import Entry
from vaala.dao.store import SessionLog, Store, open_store
from vaala_protocol.errors import NotFound
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo, SessionInfo
from vaala_storage.errors import AlreadyExists, StorageError, StorageFull
from vaala_storage.faults import Fault
from vaala_storage.file import open_file_blobs


async def test_an_empty_conversation_leaves_nothing(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        before = files_below(tmp_path / "conversations")
        log, _ = await begin(store, title="never used")
        await log.update(tags=("x",))
        await log.blobs.put(b"an image that was pasted")
        assert log.staged
        assert await listed(store) == []
        assert (await store.search("never")).results == ()
        await log.close()
        assert files_below(tmp_path / "conversations") == before
        with pytest.raises(NotFound):
            await store.open(log.id)


async def test_the_first_append_brings_everything_at_once(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store, title="old title")
        await log.update(title="new title", tags=("x",))
        key = await log.blobs.put(b"image")
        await say(session, "hello")
        assert not log.staged
        directory = tmp_path / "conversations" / log.id
        assert sorted(path.name for path in directory.iterdir()) == [
            "blobs",
            "main.jsonl",
            "metadata.jsonl",
        ]
        assert (directory / "main.jsonl").read_bytes().count(b"\n") == 1
        assert (directory / "blobs" / key).read_bytes() == b"image"
        assert await log.blobs.get(key) == b"image"
        assert await listed(store) == [log.id]
        (row,) = (await store.list()).rows
        assert (row.info.title, row.info.tags, row.items) == ("new title", ("x",), 2)
        await say(session, "and on")
        await log.close()
        again = await store.open(log.id)
        assert not again.staged
        assert not again.foreign
        assert again.record == log.record


async def test_its_title_is_how_the_first_message_begins(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    assert log.record.title == ""
    await say(session, "fix\n  the   " + "bug " * 60)
    title = ("fix the " + "bug " * 60)[:80]
    assert log.record.title == title
    assert log.record.updated_at == 2000
    assert (await memory_store.list()).conversations[0].title == title
    await say(session, "another message")
    await log.close()
    again = await memory_store.open(log.id)
    assert again.record == log.record
    assert (await again.update(title="mine")).title == "mine"


async def test_an_ephemeral_one_never_reaches_the_disk(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        before = files_below(tmp_path / "conversations")
        log, session = await begin(store, ephemeral=True)
        await tell(session, Story(1, log.id), 2)
        key = await log.blobs.put(b"output")
        assert log.staged
        await log.close()
        again = await store.open(log.id)
        assert (await again.open_session(log.id)).state == session.state
        assert await again.blobs.get(key) == b"output"
        assert await listed(store) == []
        assert files_below(tmp_path / "conversations") == before
        await again.close()
        await store.delete(log.id)
        with pytest.raises(NotFound):
            await store.open(log.id)


async def test_two_conversations_cannot_have_one_id(memory_store: Store) -> None:
    log, _ = await begin(memory_store)
    info = ConversationInfo(id=log.id, created_at=1, updated_at=1)
    root = SessionInfo(id=log.id, agent="a", created_at=1, settings=Settings())
    with pytest.raises(AlreadyExists):
        await memory_store.create(info, root)


@pytest.mark.parametrize("call", ["open_new", "write", "make_directory"])
async def test_a_full_disk_keeps_it_staged_and_usable(autojump_clock: MockClock, call: str) -> None:
    """G3-1."""
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        machine.files.plan(call, Fault.FULL)
        with pytest.raises(StorageFull):
            await session.append(exchange("no space", "y"))
        assert log.staged
        await say(session, "space again")
        assert not log.staged
        assert len((await session.items()).items) == 2
        assert await listed(store) == [log.id]


async def persist(session: SessionLog, batch: list[Entry]) -> None:
    """Append as a session does that finds out what became of an append before it tries again."""
    before = session.seq
    try:
        await session.append(batch)
    except StorageError:
        await session.recover()
        if session.seq == before:
            await write(session, batch)
    else:
        for entry in batch:
            session.state.apply(entry)


@pytest.mark.parametrize("call", ["sync_data", "sync_directory", "rename"])
async def test_an_unknown_outcome_is_found_out(autojump_clock: MockClock, call: str) -> None:
    """G3-2: whether it was written or not, the session goes on with every entry once."""
    for skip in range(6):
        machine = Machine()
        async with machine.store() as store:
            log, session = await begin(store)
            machine.files.plan(call, Fault.IO, skip=skip)
            await persist(session, exchange("hello", "y", number=1))
            await persist(session, exchange("again", "y", at=3, number=2))
            await persist(session, exchange("and on", "y", at=5, number=3))
            assert [item.at for item in (await session.items()).items] == [1, 2, 3, 4, 5, 6]
            again = await log.open_session(log.id)
            assert again.state == session.state
            assert again.seq == session.seq


async def test_a_crash_in_the_move_leaves_no_blobs(autojump_clock: MockClock) -> None:
    machine = Machine()
    async with machine.store() as store:
        log, session = await begin(store)
        await log.blobs.put(b"image")
        machine.files.plan("open_new", Fault.FULL, skip=1)
        with pytest.raises(StorageFull):
            await session.append(exchange("x", "y"))
        machine.lose_index()
    assert any("/blobs/" in call.path for call in machine.files.calls)
    machine.restart(1)
    async with machine.store() as store:
        await store.settled()
        assert await listed(store) == []
    async with open_file_blobs("/data", files=machine.files) as blobs:
        assert [key async for key in blobs.keys(log.id)] == []
