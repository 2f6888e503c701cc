"""A device that is full or fails: what a caller is told, and what is left."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.storage.file_helpers import Outcomes, one_append, queued_behind_a_sync, silence
from vaala_storage import (
    AlreadyExists,
    Conflict,
    Entry,
    NotFound,
    ReadOnly,
    StorageError,
    StorageFailed,
    StorageFull,
    StreamBroken,
)
from vaala_storage.faults import Fault, FaultyFiles, MemoryFiles
from vaala_storage.file import FileLog, open_file_blobs, open_file_log
from vaala_storage.file.system import SYSTEM_FILES

FULL = [Fault.FULL, Fault.QUOTA, Fault.SHORT]


@pytest.fixture
def disk() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def files(disk: MemoryFiles) -> FaultyFiles:
    return FaultyFiles(disk)


@pytest.fixture
async def log(files: FaultyFiles) -> AsyncGenerator[FileLog]:
    """A log in memory with two entries in p/s."""
    async with open_file_log("/data", files=files) as opened:
        await opened.create("p", {"s": [{"n": 1}]})
        await opened.append("p", "s", [{"n": 2}], expected=1)
        yield opened


async def numbers(log: FileLog, stream: str = "s") -> list[object]:
    return [stored.entry["n"] for stored in (await log.read("p", stream)).entries]


@pytest.mark.parametrize("fault", FULL)
async def test_a_full_disk_leaves_the_stream_as_it_was(
    log: FileLog, files: FaultyFiles, disk: MemoryFiles, fault: Fault
) -> None:
    before = disk.content("/data/p/s.jsonl")
    files.plan("write", fault)
    with pytest.raises(StorageFull, match="p/s"):
        await log.append("p", "s", [{"n": 3}], expected=2)
    assert disk.content("/data/p/s.jsonl") == before
    assert await numbers(log) == [1, 2]
    assert await log.append("p", "s", [{"n": 3}], expected=2) == 3
    assert await numbers(log) == [1, 2, 3]


async def test_a_really_full_disk_is_readable_and_goes_on_when_there_is_space(
    log: FileLog, disk: MemoryFiles
) -> None:
    disk.space = 150  # G3-1
    for _ in range(3):
        with pytest.raises(StorageFull, match="p/s"):
            await log.append("p", "s", [{"n": 3, "x": "x" * 200}], expected=2)
        assert await numbers(log) == [1, 2]
        assert disk.space == 150
    with pytest.raises(StorageFull):
        await log.create("q", {"s": [{"n": 1, "x": "x" * 200}]})
    assert (await log.paths()).paths == ("p",)
    disk.space = 2000
    assert await log.append("p", "s", [{"n": 3, "x": "x" * 200}], expected=2) == 3
    await log.create("q", {"s": [{"n": 1, "x": "x" * 200}]})
    assert await numbers(log) == [1, 2, 3]


@pytest.mark.parametrize("fault", FULL)
async def test_a_full_disk_leaves_no_new_stream(
    log: FileLog, files: FaultyFiles, fault: Fault
) -> None:
    files.plan("write", fault)
    with pytest.raises(StorageFull):
        await log.append("p", "new", [{"n": 1}], expected=0)
    assert await log.streams("p") == ("s",)
    assert await log.append("p", "new", [{"n": 1}], expected=0) == 1


@pytest.mark.parametrize("call", ["open_new", "write", "make_directory"])
@pytest.mark.parametrize("skip", [0, 1])
async def test_a_full_disk_leaves_no_half_path(
    log: FileLog, files: FaultyFiles, disk: MemoryFiles, call: str, skip: int
) -> None:
    files.plan(call, Fault.FULL, skip=skip)
    with pytest.raises(StorageFull):
        await log.create("q", {"a": [{"n": 1}], "b": [{"n": 1}]})
    assert disk.list_directory("/data/.log") == []
    with pytest.raises(NotFound):
        await log.streams("q")
    await log.create("q", {"a": [{"n": 1}], "b": [{"n": 1}]})
    assert await log.streams("q") == ("a", "b")


async def test_a_write_error_is_undone(log: FileLog, files: FaultyFiles, disk: MemoryFiles) -> None:
    before = disk.content("/data/p/s.jsonl")
    files.plan("write", Fault.IO)  # G3-2
    with pytest.raises(StorageFailed, match=r"p/s: Input/output error"):
        await log.append("p", "s", [{"n": 3}], expected=2)
    assert disk.content("/data/p/s.jsonl") == before
    assert await log.append("p", "s", [{"n": 3}], expected=2) == 3


async def test_a_write_that_cannot_be_undone_breaks_the_stream(
    log: FileLog, files: FaultyFiles, disk: MemoryFiles
) -> None:
    before = disk.content("/data/p/s.jsonl")
    files.plan("write", Fault.IO)
    files.plan("truncate", Fault.IO)
    with pytest.raises(StreamBroken, match="could not be undone"):
        await log.append("p", "s", [{"n": 3}], expected=2)
    assert disk.content("/data/p/s.jsonl") != before
    with pytest.raises(StreamBroken):
        await log.append("p", "s", [{"n": 3}], expected=2)
    assert await log.recover("p", "s") == (2, ())
    assert disk.content("/data/p/s.jsonl") == before


@pytest.mark.parametrize("stream", ["s", "new"])
async def test_a_failed_sync_breaks_the_stream_until_it_is_recovered(
    log: FileLog, files: FaultyFiles, stream: str
) -> None:
    last = 2 if stream == "s" else 0
    files.plan("sync_data", Fault.IO)  # G3-2
    with pytest.raises(StreamBroken, match=rf"p/{stream}: sync failed \(Input/output error\)"):
        await log.append("p", stream, [{"n": 3}], expected=last)
    for _ in range(2):
        with pytest.raises(StreamBroken, match="recover"):
            await log.append("p", stream, [{"n": 3}], expected=last)
    await log.release("p")
    with pytest.raises(StreamBroken, match="recover"):
        await log.append("p", stream, [{"n": 3}], expected=last)
    assert await log.append("p", "other", [{"n": 1}], expected=0) == 1
    assert await log.recover("p", stream) == (last, ())
    assert await log.append("p", stream, [{"n": 3}], expected=last) == last + 1


async def test_a_directory_that_cannot_be_synced_breaks_the_new_stream(
    log: FileLog, files: FaultyFiles
) -> None:
    files.plan("sync_directory", Fault.IO, skip=2)  # those of p and the root, which were there
    with pytest.raises(StreamBroken):
        await log.append("p", "new", [{"n": 1}], expected=0)
    assert await log.recover("p", "new") == (0, ())
    assert await log.append("p", "new", [{"n": 1}], expected=0) == 1


@pytest.mark.parametrize("call", ["open_append", "truncate", "sync_data", "sync_directory"])
async def test_recovery_that_fails_can_be_tried_again(
    log: FileLog, files: FaultyFiles, call: str
) -> None:
    files.plan("sync_data", Fault.IO)
    with pytest.raises(StreamBroken):
        await log.append("p", "s", [{"n": 3}], expected=2)
    files.plan(call, Fault.IO)
    with pytest.raises(StreamBroken, match="try it again"):
        await log.recover("p", "s")
    with pytest.raises(StreamBroken):
        await log.append("p", "s", [{"n": 3}], expected=2)
    assert await log.recover("p", "s") == (2, ())
    assert await log.append("p", "s", [{"n": 3}], expected=2) == 3


async def test_all_that_wait_are_told_of_a_failed_sync(tmp_path: Path) -> None:
    files = FaultyFiles(SYSTEM_FILES)
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        batches = [[{"n": n}] for n in range(1, 5)]
        async with queued_behind_a_sync(log, files, batches, expected=0) as outcomes:
            files.plan("sync_data", Fault.IO)
        assert outcomes[0] == 1
        assert [type(outcomes[n]) for n in (1, 2, 3)] == [StreamBroken] * 3
        assert len({id(outcomes[n]) for n in (1, 2, 3)}) == 3
        assert await log.recover("p", "s") == (1, ())


async def test_a_full_disk_fails_all_of_a_batch_and_the_next_conflicts(tmp_path: Path) -> None:
    files = FaultyFiles(SYSTEM_FILES)
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        batches: list[list[Entry]] = [[{"n": 1}], [{"n": 2}], [{"n": 3}]]
        batches.append([{"n": 4, "x": "x" * 1_048_490}])
        async with queued_behind_a_sync(log, files, batches, expected=0) as outcomes:
            files.plan("write", Fault.FULL)
        assert outcomes[0] == 1
        assert [type(outcomes[n]) for n in (1, 2, 3)] == [StorageFull, StorageFull, Conflict]
        assert await log.append("p", "s", [{"n": 2}], expected=1) == 2


async def test_a_conflict_is_told_only_when_what_it_conflicts_with_is_durable(
    tmp_path: Path,
) -> None:
    files = FaultyFiles(SYSTEM_FILES)
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        outcomes: Outcomes = {}
        async with queued_behind_a_sync(log, files, [[{"n": 1}]], expected=0):
            files.plan("write", Fault.FULL)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one_append, log, [{"n": 2}], 1, outcomes)
                await wait_all_tasks_blocked()
                nursery.start_soon(one_append, log, [{"n": 9}], 0, outcomes)
                await wait_all_tasks_blocked()
                assert outcomes == {}
                files.release()
        assert isinstance(outcomes[1], StorageFull)
        assert str(outcomes[0]) == "p/s: expected last sequence 0, it is 1"


async def test_a_cancel_ends_only_the_waiting(tmp_path: Path) -> None:
    """What began goes on behind the cancelled call, what had not begun never happens."""
    files = FaultyFiles(SYSTEM_FILES)
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        await log.recover("p", "s")
        files.plan("sync_data", Fault.SILENT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one_append, log, [{"n": 1}], 0, {})
            await silence(files)
            nursery.start_soon(one_append, log, [{"n": 2}], 1, {})
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        files.release()
        with pytest.raises(Conflict):
            await log.append("p", "s", [{"n": 1}], expected=0)
        assert await numbers(log) == [1]


async def test_leaving_finishes_what_has_begun(tmp_path: Path) -> None:
    files = FaultyFiles(SYSTEM_FILES)
    outcomes: Outcomes = {}
    async with trio.open_nursery() as nursery:
        async with open_file_log(tmp_path, files=files) as log:
            await log.create("p", {"s": []})
            await log.recover("p", "s")
            files.plan("sync_data", Fault.SILENT)
            nursery.start_soon(one_append, log, [{"n": 1}], 0, outcomes)
            await silence(files)
            files.release()
        assert outcomes == {0: 1}
    with pytest.raises(StorageFailed, match="closed"):
        await log.append("p", "s", [{"n": 2}], expected=1)
    with pytest.raises(StorageFailed, match="closed"):
        await log.read("p", "s")


async def test_a_directory_removed_at_run_time(tmp_path: Path) -> None:
    async with open_file_log(tmp_path) as log:
        await log.create("p", {"s": [{"n": 1}]})
        await log.append("p", "s", [{"n": 2}], expected=1)
        shutil.rmtree(tmp_path / "p")  # G3-4
        with pytest.raises(NotFound, match="p/s"):
            await log.append("p", "s", [{"n": 3}], expected=2)
        with pytest.raises(NotFound):
            await log.read("p", "s")
        await log.create("p", {"s": [{"n": 1}]})
        assert await log.append("p", "s", [{"n": 2}], expected=1) == 2
        shutil.rmtree(tmp_path)
        with pytest.raises(NotFound):
            await log.append("p", "s", [{"n": 3}], expected=2)
        await log.create("p", {"s": [{"n": 1}]})
        assert (await log.paths()).paths == ("p",)


@pytest.mark.parametrize("call", ["write", "open_append"])
async def test_a_read_only_remount(log: FileLog, files: FaultyFiles, call: str) -> None:
    if call == "open_append":
        await log.release("p")
    files.plan(call, Fault.READ_ONLY)  # G3-4
    with pytest.raises(ReadOnly, match="p/s"):
        await log.append("p", "s", [{"n": 3}], expected=2)
    assert await numbers(log) == [1, 2]
    assert await log.append("p", "s", [{"n": 3}], expected=2) == 3


async def test_a_second_writer_is_caught(tmp_path: Path) -> None:
    async with open_file_log(tmp_path) as one, open_file_log(tmp_path) as two:
        await one.create("p", {"s": []})
        await one.append("p", "s", [{"n": 1}], expected=0)
        with pytest.raises(Conflict):
            await two.append("p", "s", [{"n": 1}], expected=0)
        assert await two.append("p", "s", [{"n": 2}], expected=1) == 2
        with pytest.raises(Conflict) as caught:
            await one.append("p", "s", [{"n": 2}], expected=1)
        assert caught.value.last == 2
        assert await one.append("p", "s", [{"n": 3}], expected=2) == 3
        with pytest.raises(AlreadyExists):
            await two.create("p", {"s": []})


async def test_a_log_opened_for_reading_refuses_the_rest(tmp_path: Path) -> None:
    async with open_file_log(tmp_path) as log:
        await log.create("p", {"s": [{"n": 1}]})
    async with open_file_log(tmp_path, read_only=True) as log:
        assert await numbers(log) == [1]
        for refused in (
            log.append("p", "s", [{"n": 2}], expected=1),
            log.create("q", {"s": []}),
            log.recover("p", "s"),
            log.delete_stream("p", "s"),
            log.delete_path("p"),
        ):
            with pytest.raises(ReadOnly, match="opened for reading"):
                await refused
        await log.release("p")
    async with open_file_blobs(tmp_path, read_only=True) as blobs:
        with pytest.raises(ReadOnly):
            await blobs.put("p", "k", b"")
        with pytest.raises(ReadOnly):
            await blobs.delete_path("p")


@pytest.mark.parametrize(
    ("call", "fault"),
    [("write", Fault.FULL), ("sync_data", Fault.IO), ("truncate", Fault.IO), ("state", Fault.IO)],
)
async def test_no_descriptor_is_left(
    log: FileLog, files: FaultyFiles, disk: MemoryFiles, call: str, fault: Fault
) -> None:
    if call == "truncate":
        files.plan("write", Fault.SHORT)
    files.plan(call, fault)
    with pytest.raises(StorageError):
        await log.append("p", "s", [{"n": 3}], expected=2)
    files.plan("read", Fault.IO)
    with pytest.raises(StorageFailed):
        await log.read("p", "s")
    await log.recover("p", "s")
    await log.append("p", "s", [{"n": 3}], expected=2)
    await log.release("p")
    await wait_all_tasks_blocked()
    assert disk.open_count == 0


@pytest.mark.parametrize("seed", range(20))
async def test_a_path_that_is_said_to_exist_is_durable(seed: int) -> None:
    files = FaultyFiles(MemoryFiles())
    async with open_file_log("/data", files=files) as log:
        await log.create("other", {"s": []})
        files.plan("sync_directory", Fault.IO, skip=1)  # behind that of the hidden directory
        with pytest.raises(StorageFailed):
            await log.create("p", {"s": [{"n": 1}]})
        with pytest.raises(AlreadyExists):
            await log.create("p", {"s": [{"n": 1}]})
    files.restart(Random(seed))
    async with open_file_log("/data", files=files) as log:
        assert await numbers(log) == [1]


async def test_a_path_made_anew_behind_our_back(tmp_path: Path) -> None:
    async with open_file_log(tmp_path) as log:
        await log.create("p", {"s": []})
        await log.append("p", "s", [{"n": 1}], expected=0)
        shutil.rmtree(tmp_path / "p")
        await log.create("p", {"s": [{"n": 1, "x": "x" * 99}, {"n": 2}]})
        assert await numbers(log) == [1, 2]
        assert await log.append("p", "s", [{"n": 3}], expected=2) == 3
