"""Work on its way from a task to a database thread, and its outcome on the way back.

A call costs one hop. Threads are storage's own: file tools that fill trio's default limiter do
not stop storage. The queue holds at most one job for each task that waits for it.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import apsw
import outcome
import trio

T = TypeVar("T")


class Job(Generic[T]):
    """A function to run on a connection, and the task that waits for it.

    Cancelled while it waits, it is never run. Cancelled while it runs, the task goes on at once;
    the thread sees `left` and may stop. The outcome of a job that was left goes nowhere.
    """

    def __init__(self, work: Callable[[apsw.Connection], T]) -> None:
        self.work = work
        self.left = False
        self._task = trio.lowlevel.current_task()
        self._token = trio.lowlevel.current_trio_token()

    async def wait(self) -> T:
        """Wait for the outcome; exactly one task calls this, right after queueing the job."""
        result: T = await trio.lowlevel.wait_task_rescheduled(self._leave)
        return result

    def finish(self, result: outcome.Outcome[T]) -> None:
        """Hand over the outcome, in the thread."""
        with suppress(trio.RunFinishedError):  # the program ended; nobody waits
            self._token.run_sync_soon(self._deliver, result)

    def _leave(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self.left = True
        return trio.lowlevel.Abort.SUCCEEDED

    def _deliver(self, result: outcome.Outcome[T]) -> None:
        if not self.left:
            trio.lowlevel.reschedule(self._task, result)


class JobQueue:
    """Jobs in order, for any number of threads, until it is closed."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()

    def put(self, job: Job[Any]) -> None:
        self._jobs.put(job)

    def close(self) -> None:
        """Let threads end once they have taken every job before this."""
        self._jobs.put(None)

    def take(self) -> Job[Any] | None:
        """Wait for the next job; None: the queue is closed."""
        return self._open(self._jobs.get())

    def take_waiting(self) -> Job[Any] | None:
        """Return the next job if one waits."""
        try:
            return self._open(self._jobs.get_nowait())
        except queue.Empty:
            return None

    def _open(self, job: Job[Any] | None) -> Job[Any] | None:
        if job is None:
            self._jobs.put(None)  # every thread must see it
        return job
