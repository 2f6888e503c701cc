"""An append that waits for its outcome."""

from __future__ import annotations

import trio
from trio.lowlevel import Abort, RaiseCancelT, Task


class Waiter:
    """Plain slots and trio's own parking: there is one for each append (measured: an event and a
    cancel scope each cost a quarter of an append's time)."""

    __slots__ = (
        "_error",
        "_settled",
        "_task",
        "begun",
        "body",
        "count",
        "expected",
        "last",
        "moved",
    )

    def __init__(self, body: bytes, count: int, expected: int) -> None:
        self.body = body
        self.count = count
        self.expected = expected
        self.last = 0
        self.begun = False
        self.moved = 0
        self._settled = False
        self._error: BaseException | None = None
        self._task: Task | None = None

    async def outcome(self) -> int:
        """Wait and return the last sequence, or raise; a cancel only ends the waiting."""
        if self._settled:
            await trio.lowlevel.checkpoint()
        else:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._stop_waiting)
        if self._error is not None:
            raise self._error
        return self.last

    def settle(self, last: int) -> None:
        self.last = last
        self._wake()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._wake()

    def _wake(self) -> None:
        self._settled = True
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)
            self._task = None

    def _stop_waiting(self, _: RaiseCancelT) -> Abort:
        self._task = None
        return Abort.SUCCEEDED
