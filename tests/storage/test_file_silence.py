"""A device that does not answer: what waits is told, what comes back late changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.storage.file_helpers import Outcomes, one_append, silence
from vaala_storage import (
    StorageFailed,
    StreamBroken,
)
from vaala_storage.faults import Fault, FaultyFiles, MemoryFiles
from vaala_storage.file import FileLog, open_file_log
from vaala_storage.file.handles import Handles
from vaala_storage.file.layout import Layout
from vaala_storage.file.lines import encode_body
from vaala_storage.file.pool import InlinePool, Job
from vaala_storage.file.stream import Stream
from vaala_storage.file.stream_file import StreamFile
from vaala_storage.file.system import SYSTEM_FILES
from vaala_storage.file.watch import Watch
from vaala_storage.limits import SYNC_SILENCE_S_MAX, SYNC_THREADS_MAX


async def numbers(log: FileLog, stream: str = "s") -> list[object]:
    return [stored.entry["n"] for stored in (await log.read("p", stream)).entries]


@pytest.mark.parametrize("kind", ["memory", "system"])
async def test_a_silent_sync_is_taken_for_failed(
    tmp_path: Path, mock_clock: MockClock, kind: str
) -> None:
    files = FaultyFiles(MemoryFiles() if kind == "memory" else SYSTEM_FILES)
    outcomes: Outcomes = {}
    async with open_file_log(tmp_path, files=files) as log, trio.open_nursery() as nursery:
        await log.create("p", {"s": [{"n": 1}]})
        await log.recover("p", "s")
        files.plan("sync_data", Fault.SILENT)
        nursery.start_soon(one_append, log, [{"n": 2}], 1, outcomes)
        await silence(files)
        nursery.start_soon(one_append, log, [{"n": 3}], 2, outcomes)
        # A silent stream holds up no other.
        assert await log.append("p", "t", [{"n": 1}], expected=0) == 1
        mock_clock.jump(SYNC_SILENCE_S_MAX - 0.1)
        await wait_all_tasks_blocked()
        assert outcomes == {}
        mock_clock.jump(0.2)
        await wait_all_tasks_blocked()
        assert isinstance(outcomes[1], StreamBroken)
        assert isinstance(outcomes[2], StreamBroken)
        assert "not answered for 10 s" in str(outcomes[1])
        with pytest.raises(StreamBroken):
            await log.append("p", "s", [{"n": 2}], expected=1)
        assert await log.recover("p", "s") == (1, ())
        assert await log.append("p", "s", [{"n": 2}], expected=1) == 2
        files.release()
    assert await no_thread_is_left()


async def test_silent_threads_are_replaced(tmp_path: Path, mock_clock: MockClock) -> None:
    """All threads hang, and more appends wait for one; afterwards there are threads again."""
    files = FaultyFiles(SYSTEM_FILES)
    streams = [f"lost{index}" for index in range(SYNC_THREADS_MAX + 5)]
    told: list[str] = []

    async def lose(log: FileLog, stream: str) -> None:
        with pytest.raises(StreamBroken, match=stream):
            await log.append("p", stream, [{"n": 1}], expected=0)
        told.append(stream)

    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        async with trio.open_nursery() as nursery:
            for _ in range(SYNC_THREADS_MAX):
                files.plan("sync_data", Fault.SILENT)
            for stream in streams:
                nursery.start_soon(lose, log, stream)
            for _ in range(SYNC_THREADS_MAX):
                await silence(files)
            mock_clock.jump(SYNC_SILENCE_S_MAX + 1)
        assert sorted(told) == sorted(streams)
        for stream in ("s", "t", "u"):
            assert await log.append("p", stream, [{"n": 1}], expected=0) == 1
        files.release()
        assert await log.recover("p", streams[0]) == (0, ())
        assert await log.append("p", streams[0], [{"n": 1}], expected=0) == 1
    assert await no_thread_is_left()


async def no_thread_is_left() -> bool:
    """Tell whether the threads of all stores that were opened end."""
    threads = [each for each in threading.enumerate() if each.name.startswith("vaala-")]
    for thread in threads:
        await trio.to_thread.run_sync(thread.join, 10)
    return not any(thread.is_alive() for thread in threads)


async def test_a_read_of_a_silent_device_can_be_cancelled(tmp_path: Path) -> None:
    files = FaultyFiles(SYSTEM_FILES)
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": [{"n": 1}]})
        files.plan("read", Fault.SILENT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(numbers, log)
            await silence(files)
            nursery.cancel_scope.cancel()
        assert await numbers(log) == [1]
        files.release()
    assert await no_thread_is_left()


async def test_a_read_of_a_silent_device_ends(mock_clock: MockClock) -> None:
    mock_clock.autojump_threshold = 0
    files = FaultyFiles(MemoryFiles())
    async with open_file_log("/data", files=files) as log:
        await log.create("p", {"s": [{"n": 1}]})
        files.plan("read", Fault.SILENT)
        with pytest.raises(StorageFailed, match="p/s: the device has not answered for 60 s"):
            await log.read("p", "s")
        assert await numbers(log) == [1]


@pytest.mark.parametrize("call", ["state", "open_append"])
async def test_a_call_that_comes_back_late_cuts_nothing(
    tmp_path: Path, mock_clock: MockClock, call: str
) -> None:
    """A recovery goes on where it hung, long after another one has done its work."""
    files = FaultyFiles(SYSTEM_FILES)
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": [{"n": 1}]})
        await log.recover("p", "s")
        files.plan("sync_data", Fault.IO)
        with pytest.raises(StreamBroken):
            await log.append("p", "s", [{"n": "lost"}], expected=1)
        files.plan(call, Fault.SILENT)
        async with trio.open_nursery() as nursery:

            async def recover() -> None:
                with pytest.raises(StreamBroken, match="not answered"):
                    await log.recover("p", "s")

            nursery.start_soon(recover)
            await silence(files)
            mock_clock.jump(SYNC_SILENCE_S_MAX + 1)
        assert await log.recover("p", "s") == (1, ())
        assert await log.append("p", "s", [{"n": 2}], expected=1) == 2
        files.release()
    assert await no_thread_is_left()
    async with open_file_log(tmp_path) as log:
        assert await numbers(log) == [1, 2]


class UntoldPool(InlinePool):
    """Has finished every job when it is handed over, and tells nobody until it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self._untold: list[Job] = []

    def submit(
        self, work: Callable[[Job], Any], done: Callable[[Job], None], *, patient: bool = False
    ) -> Job:
        job = Job(work, done, patient)
        job.run()
        self._untold.append(job)
        return job

    def collect(self) -> None:
        untold, self._untold = self._untold, []
        for job in untold:
            job.done(job)


def untold_streams(*names: str) -> tuple[UntoldPool, Watch, list[Stream]]:
    """Return streams of no entries that share a pool and a watch."""
    files = MemoryFiles()
    for directory in ("/data", "/data/p"):
        files.make_directory(directory)
    files.close(files.open_new("/data/p/metadata.jsonl"))
    pool, watch, layout = UntoldPool(), Watch(), Layout.of(files, "/data")
    handles = Handles(files, pool, len(names))
    return pool, watch, [
        Stream(StreamFile(layout, "p", name), pool, handles, watch) for name in names
    ]  # fmt: skip


async def test_an_append_that_has_finished_untold_is_not_taken_for_silent() -> None:
    pool, _, (stream,) = untold_streams("s")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.append, encode_body([{"n": 1}], "s"), 1, 0)
        await wait_all_tasks_blocked()
        pool.collect()  # the stream is loaded, its append is written
        stream.silent()
    assert stream.position is not None
    assert stream.position.last == 1


async def test_after_a_pause_of_the_whole_process_nothing_is_taken_for_silent(
    mock_clock: MockClock,
) -> None:
    """Stopped and continued: all is overdue, and all has finished."""
    pool, watch, (one, other) = untold_streams("one", "other")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        async with trio.open_nursery() as appends:
            appends.start_soon(one.append, encode_body([{"n": 1}], "one"), 1, 0)
            appends.start_soon(other.append, encode_body([{"n": 1}], "other"), 1, 0)
            await wait_all_tasks_blocked()
            pool.collect()  # both are loaded, and their appends are written
            # Behind one of them another begins as soon as it is told.
            appends.start_soon(other.append, encode_body([{"n": 2}], "other"), 1, 1)
            await wait_all_tasks_blocked()
            mock_clock.jump(SYNC_SILENCE_S_MAX + 1)
            await wait_all_tasks_blocked()
            pool.collect()
        nursery.cancel_scope.cancel()
    assert [stream.position and stream.position.last for stream in (one, other)] == [1, 2]
