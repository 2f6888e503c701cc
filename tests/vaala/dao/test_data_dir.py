"""The data directory: one owner at a time, for its user alone, and repaired beside the work."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.vaala.dao.conversing import begin, listed, say
from vaala.dao.data_dir import DataDir
from vaala.dao.opening import open_memory_store
from vaala.dao.store import StoreLocked, open_store
from vaala.discovery import is_owned

HOLDER = """
import pathlib, sys, trio
from tests.vaala.dao.conversing import begin, exchange
from vaala.dao.store import StoreLocked, open_store

async def main():
    try:
        async with open_store(pathlib.Path(sys.argv[1])) as store:
            log, session = await begin(store)
            await session.append(exchange("from the other process", "yes")[:4])
            sys.stdout.write(f"{log.id}\\n")
            sys.stdout.flush()
            await trio.to_thread.run_sync(sys.stdin.read)
    except StoreLocked as locked:
        sys.stdout.write(f"locked by {locked.pid}\\n")
        sys.stdout.flush()

trio.run(main)
"""


def start_holder(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )


def start_sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"], close_fds=False)


def moved_aside(root: Path) -> list[Path]:
    return list(root.glob("metadata.db.corrupt-*"))


def said(holder: subprocess.Popen[str]) -> str:
    assert holder.stdout is not None
    return holder.stdout.readline().strip()


def end(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()


async def test_a_second_opener_is_told_who_has_it(tmp_path: Path) -> None:
    """G2-3: also within one process."""
    async with open_store(tmp_path):
        with pytest.raises(StoreLocked) as caught:
            async with open_store(tmp_path):
                pass
    assert caught.value.pid == os.getpid()
    assert caught.value.since is not None
    assert f"process {os.getpid()}" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    async with open_store(tmp_path):
        pass


def test_of_two_at_once_exactly_one_wins(tmp_path: Path) -> None:
    """G2-3."""
    for number in range(3):
        root = tmp_path / str(number)
        holders = [start_holder(root) for _ in range(2)]
        try:
            answers = [said(holder) for holder in holders]
            losers = [answer for answer in answers if answer.startswith("locked by")]
            winner = holders[0 if answers[1] in losers else 1]
            # The winner may not have written its number yet.
            assert losers in ([f"locked by {winner.pid}"], ["locked by None"])
        finally:
            for holder in holders:
                end(holder)


async def test_a_killed_owner_needs_no_cleaning_up(tmp_path: Path) -> None:
    """G2-1: and what it had open is settled at once."""
    holder = start_holder(tmp_path)
    try:
        conversation_id = await trio.to_thread.run_sync(said, holder)
        assert is_owned(tmp_path / "runtime.lock")
        holder.send_signal(signal.SIGKILL)
        await trio.to_thread.run_sync(holder.wait)
    finally:
        end(holder)
    assert not is_owned(tmp_path / "runtime.lock")
    async with open_store(tmp_path) as store:
        (row,) = (await store.list()).rows
        assert (row.id, row.info.status, row.items) == (conversation_id, "idle", 2)
        session = await (await store.open(conversation_id)).open_session(conversation_id)
        turn = session.state.head.turn
        assert turn is not None
        assert turn.state == "running"


async def test_programs_that_are_started_do_not_keep_the_lock(tmp_path: Path) -> None:
    async with open_store(tmp_path):
        child = start_sleeper()
    try:
        assert not is_owned(tmp_path / "runtime.lock")
        async with open_store(tmp_path):
            pass
    finally:
        child.kill()
        child.wait()


async def test_looking_at_the_lock_never_costs_it(tmp_path: Path) -> None:
    assert not is_owned(tmp_path / "runtime.lock")
    assert not (tmp_path / "runtime.lock").exists()
    async with open_store(tmp_path):
        assert is_owned(tmp_path / "runtime.lock")
        assert is_owned(tmp_path / "runtime.lock")
    assert not is_owned(tmp_path / "runtime.lock")


async def test_the_owner_learns_that_its_directory_has_gone(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with open_store(here) as store:
        assert store.is_in_place()
        here.rename(there)
        assert not store.is_in_place()
        async with open_store(here) as other:
            assert (store.is_in_place(), other.is_in_place()) == (False, True)
    async with open_memory_store() as nowhere:
        assert nowhere.is_in_place()


async def test_everything_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b" / "data"
    old = os.umask(0)
    try:
        async with open_store(root) as store:
            log, session = await begin(store)
            await log.blobs.put(b"x")
            await say(session, "hello")
            await store.fork(log.id)
            await store.list()
            for path in (tmp_path / "a", *(tmp_path / "a").rglob("*")):
                mode = stat.S_IMODE(path.stat().st_mode)
                assert mode == (0o700 if path.is_dir() else 0o600), path
    finally:
        os.umask(old)


async def test_the_hint_tells_no_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/vaala", "run", "my secret prompt"])
    async with open_store(tmp_path):
        hint = (tmp_path / "runtime.lock").read_text()
    assert "secret" not in hint
    assert json.loads(hint)["command"] == "/usr/bin/vaala"


async def test_the_directory_keeps_its_id(tmp_path: Path) -> None:
    directory = DataDir(tmp_path)
    assert directory.read_id() == ""
    async with open_store(tmp_path):
        found = directory.read_id()
    assert len(found) == 32
    async with open_store(tmp_path):
        assert directory.read_id() == found
    directory.id_file.write_bytes(b"\xff\xfe")
    async with open_store(tmp_path):
        assert len(directory.read_id()) == 32
        assert directory.read_id() != found


async def test_an_error_in_the_block_comes_out_as_it_is(tmp_path: Path) -> None:
    async def raising() -> None:
        async with open_store(tmp_path):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await raising()
    with trio.move_on_after(0) as scope:
        async with open_store(tmp_path):
            await trio.sleep_forever()
    assert scope.cancelled_caught
    async with open_store(tmp_path):
        pass


@pytest.mark.parametrize("what", ["garbage", "missing", "truncated"])
async def test_a_bad_index_is_moved_aside_and_built_anew(
    tmp_path: Path, what: str, warnings_logged: list[str]
) -> None:
    """G4-1, G4-3."""
    async with open_store(tmp_path) as store:
        ids = []
        for number in range(4):
            log, session = await begin(store)
            await say(session, f"question {number}", now=2000 + number)
            ids.append(log.id)
            await log.close()
    file = tmp_path / "metadata.db"
    match what:
        case "garbage":
            file.write_bytes(b"no database at all " * 500)
        case "truncated":
            file.write_bytes(file.read_bytes()[:5000])
        case _:
            file.unlink()
    async with open_store(tmp_path) as store:
        await store.settled()
        page = await store.list()
        assert page.complete
        assert [row.id for row in page.rows] == ids[::-1]
        assert (await store.search("question 2")).results[0].conversation.id == ids[2]
    assert bool(moved_aside(tmp_path)) == (what != "missing")
    assert bool(warnings_logged) == (what != "missing")
    async with open_store(tmp_path) as store:
        assert await listed(store) == ids[::-1]


async def test_an_index_that_cannot_be_opened_is_no_reason_to_fail(
    tmp_path: Path, warnings_logged: list[str]
) -> None:
    (tmp_path / "metadata.db").mkdir()
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
        again = await store.open(log.id)
        assert again.record.title == "hello"
    assert warnings_logged


async def test_delete_removes_at_once_and_for_good(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await log.blobs.put(b"x" * 1000)
        await say(session, "remove me")
        kept, other = await begin(store)
        await say(other, "keep me")
        await log.close()
        await store.delete(log.id)
        assert not (tmp_path / "conversations" / log.id).exists()
        assert await listed(store) == [kept.id]
        assert (await store.search("remove")).results == ()
        while list((tmp_path / "trash").iterdir()):
            await trio.lowlevel.checkpoint()


async def test_start_up_finishes_a_delete(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "remove me")
        await log.close()
    (tmp_path / "conversations" / log.id).rename(tmp_path / "trash" / f"{log.id}.left")
    (tmp_path / "metadata.db").unlink()
    async with open_store(tmp_path) as store:
        await store.settled()
        assert await listed(store) == []
        while list((tmp_path / "trash").iterdir()):
            await trio.lowlevel.checkpoint()
