"""Descriptors and what is remembered of streams stay in bounds, whatever there is to do."""

from __future__ import annotations

import resource

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from vaala_storage import StreamBroken
from vaala_storage.faults import Fault, FaultyFiles, MemoryFiles
from vaala_storage.file import open_file_log
from vaala_storage.file.handles import Handles, open_files_max
from vaala_storage.file.layout import Layout
from vaala_storage.file.pool import InlinePool
from vaala_storage.file.table import StreamTable
from vaala_storage.file.watch import Watch, beside
from vaala_storage.limits import OPEN_FILES_MAX

STREAMS = OPEN_FILES_MAX + 40


def test_a_quarter_of_the_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
        assert open_files_max() == 25
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert 1 <= open_files_max() <= OPEN_FILES_MAX


async def test_descriptors_are_bounded() -> None:
    disk = MemoryFiles()
    async with open_file_log("/data", files=disk) as log:
        await log.create("p", {"s": []})
        for last in range(2):
            for index in range(STREAMS):
                await log.append("p", f"s{index}", [{"n": last}], expected=last)
            await wait_all_tasks_blocked()
            assert disk.open_count <= open_files_max()
        await log.release("p")
        await wait_all_tasks_blocked()
        assert disk.open_count == 0
        assert await log.append("p", "s0", [{"n": 3}], expected=2) == 3
    assert disk.open_count == 0


async def test_many_streams_at_once_stay_in_bounds() -> None:
    disk = MemoryFiles()
    most = 0

    async def writer(index: int) -> None:
        nonlocal most
        for last in range(3):
            await log.append("p", f"s{index}", [{"n": last}], expected=last)
            most = max(most, disk.open_count)

    async with open_file_log("/data", files=disk) as log:
        await log.create("p", {"s": []})
        async with trio.open_nursery() as nursery:
            for index in range(STREAMS):
                nursery.start_soon(writer, index)
    assert open_files_max() // 2 < most <= STREAMS
    assert disk.open_count == 0


def small_table(files: FaultyFiles, watch: Watch, count_max: int) -> StreamTable:
    """Return a table of streams in a new path p, which has an empty stream s."""
    files.make_directory("/data")
    files.make_directory("/data/p")
    files.close(files.open_new("/data/p/s.jsonl"))
    pool = InlinePool()
    return StreamTable(Layout.of(files, "/data"), pool, Handles(files, pool, 9), watch, count_max)


@pytest.mark.parametrize("count_max", [1, 2, 5])
async def test_the_table_forgets_the_least_recently_used(count_max: int) -> None:
    watch = Watch()
    table = small_table(FaultyFiles(MemoryFiles()), watch, count_max)
    async with beside(watch.run):
        for index in range(8):
            assert await table.get("p", f"s{index}").append(b'{"n":1}', 1, 0) == 1
            assert len(table) <= count_max
        assert [n for n in range(8) if table.find("p", f"s{n}")] == list(range(8 - count_max, 8))
        # What was forgotten is found on the disk again.
        assert await table.get("p", "s0").append(b'{"n":2}', 1, 1) == 2
        await table.settle()


async def test_a_broken_stream_is_never_forgotten() -> None:
    files, watch = FaultyFiles(MemoryFiles()), Watch()
    table = small_table(files, watch, 2)
    async with beside(watch.run):
        await table.get("p", "s").append(b'{"n":1}', 1, 0)
        files.plan("sync_data", Fault.IO)
        with pytest.raises(StreamBroken):
            await table.get("p", "s").append(b'{"n":2}', 1, 1)
        for index in range(5):
            await table.get("p", f"s{index}").append(b'{"n":1}', 1, 0)
        with pytest.raises(StreamBroken):
            await table.get("p", "s").append(b'{"n":2}', 1, 1)
        assert len(table) == 2
