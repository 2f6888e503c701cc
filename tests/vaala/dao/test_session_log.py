"""One session's stream: opening, checkpoints, damage, and what a failing disk leaves."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vaala.dao.conversing import begin, exchange, say, tell, write
from tests.vaala.dao.stories import Story
from vaala.dao.entries import Entry
from vaala.dao.limits import CHECKPOINT_AFTER_BYTES_MIN
from vaala.dao.store import Store, open_memory_store, open_store
from vaala_protocol.errors import NotFound
from vaala_protocol.settings import Settings
from vaala_protocol.state import SessionInfo
from vaala_storage.errors import Conflict, TooLarge


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_opening_finds_the_state_that_was_left(seed: int) -> None:
    async def main() -> None:
        async with open_memory_store() as store:
            log, session = await begin(store)
            await tell(session, Story(seed, log.id), 4)
            again = await log.open_session(log.id)
            assert again.state == session.state
            assert again.seq == session.seq
            assert again.damage == ()

    trio.run(main)


async def test_a_checkpoint_is_due_after_growth_and_not_before(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    text = "x" * 10_000
    grown = 0
    while not session.checkpoint_due:
        assert grown < CHECKPOINT_AFTER_BYTES_MIN + 20_000
        await say(session, text)
        grown += len(text)
    assert grown > CHECKPOINT_AFTER_BYTES_MIN - 20_000
    assert (await log.open_session(log.id)).checkpoint_due
    await write(session, [session.state.checkpoint()])
    assert not session.checkpoint_due
    await say(session, "short")
    assert not session.checkpoint_due
    assert not (await log.open_session(log.id)).checkpoint_due


async def test_a_large_checkpoint_waits_for_four_times_its_size(memory_store: Store) -> None:
    _, session = await begin(memory_store)
    head = session.state.head
    instructions = {f"file-{n}": "y" * 1000 for n in range(100)}
    session.state.head = type(head)(agent="a", instructions=instructions, origin=head.origin)
    await write(session, [session.state.checkpoint()])
    for _ in range(30):
        await say(session, "x" * 10_000)
    assert not session.checkpoint_due
    for _ in range(12):
        await say(session, "x" * 10_000)
    assert session.checkpoint_due


async def test_a_missing_session_is_not_found(memory_store: Store) -> None:
    log, _ = await begin(memory_store)
    with pytest.raises(NotFound, match="no session"):
        await log.open_session("nobody")
    with pytest.raises(NotFound):
        await log.open_session("../x")
    with pytest.raises(NotFound):
        await log.open_session("metadata")


async def test_child_sessions_have_streams_of_their_own(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    await say(session, "spawn one")
    info = SessionInfo(
        id="child-1", agent="helper", created_at=5, settings=Settings(), parent=log.id,
        spawned_by="turn-1",
    )  # fmt: skip
    child = await log.create_session(info)
    await say(child, "work")
    assert await log.session_ids() == (log.id, "child-1")
    again = await log.open_session("child-1")
    assert again.info == info
    assert again.state == child.state
    with pytest.raises(Conflict):
        await log.create_session(info)


async def test_a_batch_over_the_limit_is_refused_whole(memory_store: Store) -> None:
    _, session = await begin(memory_store)
    await say(session, "small")
    before = session.seq
    with pytest.raises(TooLarge):
        await session.append(exchange("x" * (1 << 20), "y", at=5, number=9))
    assert session.seq == before
    await say(session, "small again")


async def test_a_second_writer_is_caught_and_can_recover(memory_store: Store) -> None:
    log, first = await begin(memory_store)
    await say(first, "one")
    second = await log.open_session(log.id)
    await say(second, "two")
    with pytest.raises(Conflict):
        await first.append(exchange("three", "y", at=9, number=99))
    assert await first.recover() == second.state
    await say(first, "three")
    assert first.seq == second.seq + 6


def damage(path: Path, how: str) -> None:
    """Damage a stream's file as crashes and power losses do."""
    lines = path.read_bytes().split(b"\n")
    match how:
        case "torn":
            path.write_bytes(path.read_bytes() + b'{"seq":941,"n":1,"crc":12,"e":[{"ty')
        case "torn, then an empty line":
            path.write_bytes(path.read_bytes() + b'{"seq":941,"n":1,"crc":12\n\n')
        case "zeros in the middle":
            lines[3] = bytes(300)
            path.write_bytes(b"\n".join(lines))
        case "garbage in the middle":
            lines[3] = b"\xff\xfe garbage"
            path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("how", ["torn", "torn, then an empty line"])
async def test_a_torn_end_is_cut_before_the_next_append(tmp_path: Path, how: str) -> None:
    """G1-1, G1-2."""
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        for number in range(5):
            await say(session, f"question {number}")
        state = session.state
        await log.close()
    damage(tmp_path / "conversations" / log.id / "main.jsonl", how)
    async with open_store(tmp_path) as store:
        log = await store.open(log.id)
        session = await log.open_session(log.id)
        assert session.state == state
        assert len((await session.items()).items) == 10
        await say(session, "after the crash")
        await log.close()
    async with open_store(tmp_path) as store:
        session = await (await store.open(log.id)).open_session(log.id)
        assert len((await session.items()).items) == 12
        assert session.damage == ()


@pytest.mark.parametrize("how", ["zeros in the middle", "garbage in the middle"])
async def test_a_bad_middle_is_a_gap_and_the_rest_stays(tmp_path: Path, how: str) -> None:
    """G1-3."""
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        for number in range(6):
            await say(session, f"question {number}")
        await log.close()
    damage(tmp_path / "conversations" / log.id / "main.jsonl", how)
    async with open_store(tmp_path) as store:
        log = await store.open(log.id)
        session = await log.open_session(log.id)
        assert session.damage
        page = await session.items()
        assert len(page.items) == 10
        assert page.damage
        assert [item.at for item in page.items] == [1, 2, 3, 4, 5, 6, 9, 10, 11, 12]
        await say(session, "goes on")
        assert (await session.items()).items[-1].at == 14
        assert (await store.reindex()).damaged == 1


async def test_a_stream_with_only_a_header_and_an_empty_one_open(tmp_path: Path) -> None:
    """G1-4."""
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
    file = tmp_path / "conversations" / log.id / "main.jsonl"
    async with open_store(tmp_path) as store:
        first = file.read_bytes()
        file.write_bytes(first.split(b"\n")[0] + b"\n")
        session = await (await store.open(log.id)).open_session(log.id)
        assert session.seq > 0
    file.write_bytes(b"")
    async with open_store(tmp_path) as store:
        session = await (await store.open(log.id)).open_session(log.id)
        assert (session.seq, session.state.head.agent) == (0, "")
        await say(session, "a new beginning")
        assert len((await session.items()).items) == 2
        assert session.state.format is not None


async def test_line_separators_of_unicode_end_no_line(tmp_path: Path) -> None:
    """G1-5."""
    text = "a\u2028b\u0085c\u2029d\x0b\x0c\x1c e"
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, text, text)
        await log.close()
    async with open_store(tmp_path) as store:
        session = await (await store.open(log.id)).open_session(log.id)
        assert [getattr(item, "text", text) for item in (await session.items()).items] == [
            text,
            text,
        ]
        assert session.damage == ()


async def test_an_entry_that_makes_no_sense_is_damage_and_no_end(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    await say(session, "fine")
    nonsense: list[Entry] = [
        {"t": "item", "id": "ghost", "text": "a change of nothing"},
        {"t": "checkpoint", "major": 1, "minor": 0, "head": {"turn": 5}},
        {"t": "turn", "id": "t", "state": "completed"},
    ]
    await session.append(nonsense)
    await say(session, "still fine")
    again = await log.open_session(log.id)
    assert len(again.damage) == 3
    page = await again.items()
    assert len(page.items) == 4
    assert len(page.damage) == 1


async def test_random_bytes_in_the_file_never_stop_it_from_opening(tmp_path: Path) -> None:
    for seed in range(15):
        random = Random(seed)
        root = tmp_path / str(seed)
        async with open_store(root) as store:
            log, session = await begin(store)
            await tell(session, Story(seed, log.id), 3)
            await log.close()
        file = root / "conversations" / log.id / "main.jsonl"
        data = bytearray(file.read_bytes())
        for _ in range(20):
            data[random.randrange(len(data))] = random.randrange(256)
        file.write_bytes(data)
        async with open_store(root) as store:
            log = await store.open(log.id)
            session = await log.open_session(log.id)
            page = await session.items(limit=1000)
            assert [item.at for item in page.items] == sorted(item.at for item in page.items)
            await say(session, "goes on")
            assert (await session.items()).items[-1].at == session.state.head.last_at
            report = await store.reindex()
            assert report.unreadable == ()
