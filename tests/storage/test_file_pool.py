"""Threads of storage's own, and a system that gives no more of them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from vaala_storage import StorageFailed
from vaala_storage.file.pool import open_pool
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

        def hold() -> None:
            begun.set()
            release.wait()

        ended: list[object] = []
        pool.submit(hold, ended.append)
        begun.wait()
        with no_new_threads():
            pool.submit(lambda: None, ended.append)
            release.set()
            assert await pool.call(threading.current_thread, "p", cancellable=False) is first
        assert len(ended) == 2
