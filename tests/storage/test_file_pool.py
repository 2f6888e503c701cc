"""Threads of storage's own, and a system that gives no more of them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest
import trio

from vaala_storage import StorageFailed
from vaala_storage.file.pool import Job, ThreadPool, open_pool
from vaala_storage.file.system import SYSTEM_FILES


@contextmanager
def no_new_threads() -> Generator[None]:
    """Let every new thread want more memory than there are addresses."""
    before = threading.stack_size(1 << 60)
    try:
        yield
    finally:
        threading.stack_size(before)


async def test_without_any_thread_a_call_fails_and_the_next_one_is_free() -> None:
    async with open_pool(SYSTEM_FILES, "test", 2) as pool:
        with no_new_threads(), pytest.raises(StorageFailed, match="p: no thread could be started"):
            await pool.call(lambda: 1, "p", cancellable=False)
        assert await pool.call(lambda: 2, "p", cancellable=False) == 2


async def test_without_another_thread_those_that_live_do_the_work() -> None:
    async with open_pool(SYSTEM_FILES, "test", 2) as pool:
        first = await pool.call(threading.current_thread, "p", cancellable=False)
        release, begun = threading.Event(), threading.Event()

        def hold(_: Job) -> None:
            begun.set()
            release.wait()

        ended: list[object] = []
        pool.submit(hold, ended.append)
        begun.wait()
        with no_new_threads():
            pool.submit(lambda _: None, ended.append)
            release.set()
            assert await pool.call(threading.current_thread, "p", cancellable=False) is first
        assert len(ended) == 2


async def test_a_finished_job_is_told_while_others_do_not_come_back() -> None:
    async with open_pool(SYSTEM_FILES, "test", 4) as pool:
        release, told = threading.Event(), trio.Event()
        for _ in range(3):
            pool.submit(lambda _: release.wait(), lambda _: None, patient=True)
        pool.submit(lambda _: None, lambda _: told.set(), patient=True)
        try:
            await told.wait()
        finally:
            release.set()


async def test_what_has_finished_can_be_collected_while_its_thread_is_in_another_job() -> None:
    pool = ThreadPool("test", 1)
    release, stuck = threading.Event(), threading.Event()
    told: list[Job] = []

    def hang(_: Job) -> None:
        stuck.set()
        release.wait()

    hold = threading.Event()
    pool.submit(lambda _: hold.wait(), lambda _: None, patient=True)
    first = pool.submit(lambda _: None, told.append, patient=True)
    for _ in range(4):
        pool.submit(hang, lambda _: None, patient=True)
    hold.set()
    stuck.wait()
    assert told == []
    pool.collect()
    assert told == [first]
    release.set()
    await pool.aclose()


async def test_half_of_the_open_jobs_wake_the_loop() -> None:
    pool = ThreadPool("test", 1)
    hold, release, told = threading.Event(), threading.Event(), trio.Event()
    pool.submit(lambda _: hold.wait(), lambda _: None, patient=True)
    pool.submit(lambda _: None, lambda _: told.set(), patient=True)
    # The only thread stays in the third of four, so it tells the two before it or none.
    pool.submit(lambda _: release.wait(), lambda _: None, patient=True)
    pool.submit(lambda _: None, lambda _: None, patient=True)
    hold.set()
    try:
        await told.wait()
    finally:
        release.set()
        await pool.aclose()
