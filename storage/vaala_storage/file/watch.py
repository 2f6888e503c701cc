"""Finds jobs that have been silent for too long, at no cost for those that are not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from vaala_storage.limits import SYNC_SILENCE_S_MAX


class Watched(Protocol):
    def silent(self) -> None:
        """The job in flight has said nothing for `SYNC_SILENCE_S_MAX`; must not raise."""


class Watch:
    """Deadlines are all equally far away, so the oldest job's comes first.

    One task sleeps until that; jobs come and go without waking it.
    """

    def __init__(self) -> None:
        self._deadlines: dict[Watched, float] = {}
        self._wake = trio.Event()
        self._parked = True

    def begin(self, job: Watched) -> None:
        self._deadlines[job] = trio.current_time() + SYNC_SILENCE_S_MAX
        if self._parked:
            self._parked = False
            self._wake.set()

    def end(self, job: Watched) -> None:
        self._deadlines.pop(job, None)

    async def run(self) -> None:
        """Watch for as long as it is not cancelled."""
        while True:
            await self._wake.wait()
            while self._deadlines:
                await trio.sleep_until(next(iter(self._deadlines.values())))
                self._find_silent()
            self._wake = trio.Event()
            self._parked = True

    def _find_silent(self) -> None:
        """Look at the oldest again each time: one that is asked may end others, or begin anew."""
        while self._deadlines:
            job, deadline = next(iter(self._deadlines.items()))
            if deadline > trio.current_time():
                break
            del self._deadlines[job]
            job.silent()


@asynccontextmanager
async def beside(task: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Run ``task`` until the body is left.

    An exception of the body leaves as it is: in the nursery it would become a group, and every
    caller of storage would have to look for its error inside.
    """
    error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        try:
            yield
        except BaseException as caught:
            error = caught
        nursery.cancel_scope.cancel()
    if error is not None:
        raise error
