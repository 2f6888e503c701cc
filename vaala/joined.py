"""`Joined`: work that is done once for each key, whoever asks for it and whoever goes meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Generic, TypeVar

import trio

from vaala_protocol.errors import Refused, Stopping

R = TypeVar("R")
log = logging.getLogger(__name__)


class _Work(Generic[R]):
    """One piece of work: settled once it is done, or is not going to be."""

    __slots__ = ("ended", "failure", "heard", "result", "waiting")

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.result: list[R] = []
        """What came of it; empty with a failure."""
        self.failure: Exception | None = None
        self.waiting = 0
        self.heard = False
        """Somebody has got what came of it."""


class Joined(Generic[R]):
    """Each piece of work runs in a task of its own in ``nursery``: a caller that goes away neither
    stops nor tears it. Callers that come meanwhile with the same key wait for what runs.

    An exception is the answer of those who wait; it is logged when nobody does.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._running: dict[str, _Work[R]] = {}

    def __contains__(self, key: str) -> bool:
        """Tell whether work for this key runs."""
        return key in self._running

    async def run(self, key: str, do: Callable[[], Awaitable[R]]) -> R:
        """Return what ``do`` returns, or what runs for ``key`` already does.

        Raises what it raises; `Stopping` when it is cancelled. Cancel: only stops waiting.
        """
        work = self._running.get(key) or self._begin(key, do)
        work.waiting += 1
        try:
            await work.ended.wait()
            work.heard = True
        finally:
            work.waiting -= 1
            _log_unheard(key, work)
        if isinstance(work.failure, Refused):
            # A copy for each caller: one exception raised many times mixes up its tracebacks.
            raise copy(work.failure)
        if work.failure is not None:
            raise work.failure
        return work.result[0]

    async def idle(self) -> None:
        """Wait until nothing runs."""
        while self._running:
            await next(iter(self._running.values())).ended.wait()

    def _begin(self, key: str, do: Callable[[], Awaitable[R]]) -> _Work[R]:
        work: _Work[R] = _Work()
        try:
            self._nursery.start_soon(self._do, key, do, work)
        except RuntimeError as error:  # the nursery has ended
            raise Stopping(f"{key}: what it belongs to has ended") from error
        self._running[key] = work
        return work

    async def _do(self, key: str, do: Callable[[], Awaitable[R]], work: _Work[R]) -> None:
        work.failure = Stopping(f"{key}: the runtime is closing")
        try:
            work.result.append(await do())
            work.failure = None
        except Exception as error:
            work.failure = error
        finally:
            del self._running[key]
            work.ended.set()
            _log_unheard(key, work)


def _log_unheard(key: str, work: _Work[R]) -> None:
    """Log a failure when the last one who waited for it has gone without it."""
    stopping = isinstance(work.failure, Stopping)
    if work.failure and not stopping and not (work.waiting or work.heard) and work.ended.is_set():
        log.error("%s: failed, and nobody waits for it", key, exc_info=work.failure)
