"""Where blocking calls run: a pool of storage's own threads, or at once for files in memory.

trio's default limiter is not used: forty slow file tools would hold every place in it, and with
it every append.
"""

from __future__ import annotations

import errno
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import trio

from vaala_storage.errors import StorageFailed
from vaala_storage.file.mapping import storage_error
from vaala_storage.file.system import Files
from vaala_storage.limits import (
    CALL_SILENCE_S_MAX,
    LOST_THREADS_MAX,
    REPORT_JOBS_MAX,
    REPORT_LINGER_S,
)

T = TypeVar("T")


class Hang(BaseException):
    """Raised by files in memory in place of a call that never returns."""


class GivenUp(Exception):
    """Nobody waits for this job any more, and others may have changed its file since."""


class Job:
    """A piece of blocking work; ``done`` is called in trio's thread and must not raise.

    The job is handed to its work as the right to change a file, which ends when the job is given
    up: a call that comes back after a minute must not cut what was appended meanwhile.
    """

    __slots__ = ("_unclaimed", "_work", "done", "error", "lost", "patient", "value")

    def __init__(
        self, work: Callable[[Job], Any], done: Callable[[Job], None], patient: bool
    ) -> None:
        self._work = work
        self.done = done
        self.patient = patient
        self.value: Any = None
        self.error: BaseException | None = None
        self.lost = False
        self._unclaimed = [True]

    def check(self) -> None:
        """Raise `GivenUp` when nobody waits any more; for the work, before it changes a file."""
        if self.lost:
            raise GivenUp

    def claim(self) -> bool:
        """Take the job, from either thread; True for the first one only."""
        try:
            return self._unclaimed.pop()
        except IndexError:
            return False

    def run(self) -> None:
        try:
            self.value = self._work(self)
        except BaseException as error:  # it belongs to whoever waits, in the other thread
            self.error = error


class Pool(ABC):
    @abstractmethod
    def submit(
        self, work: Callable[[Job], Any], done: Callable[[Job], None], *, patient: bool = False
    ) -> Job:
        """Have ``work`` run; ``done`` gets the finished job in a later step of trio's loop.

        ``patient`` allows to tell it together with others that finish soon after it.
        """

    @abstractmethod
    def abandon(self, job: Job) -> None:
        """Nobody waits for ``job`` any more; when it has begun, ``done`` still gets it."""

    @abstractmethod
    def collect(self) -> None:
        """Call ``done`` now for what has finished and waits to be told."""

    async def call(
        self, work: Callable[[], T], what: str, *, cancellable: bool, wait_s: float | None = None
    ) -> T:
        """Run ``work`` and return its result; ``OSError`` becomes an error of storage.

        A cancel abandons the work when it is ``cancellable``, else the call finishes first.
        Raises `StorageFailed` when nothing was heard for ``wait_s`` seconds.
        """
        wait_s = CALL_SILENCE_S_MAX if wait_s is None else wait_s
        finished = trio.Event()
        job = self.submit(lambda _: work(), lambda _: finished.set())
        try:
            with trio.move_on_after(wait_s, shield=not cancellable):
                await finished.wait()
        finally:
            if not finished.is_set():
                self.abandon(job)
        if not finished.is_set():
            raise StorageFailed(f"{what}: the device has not answered for {wait_s:g} s")
        if isinstance(job.error, OSError):
            raise storage_error(job.error, what) from job.error
        if job.error is not None:
            raise job.error
        result: T = job.value
        return result


class InlinePool(Pool):
    """Runs work in the caller's thread: deterministic, for files that never block."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()

    def submit(
        self, work: Callable[[Job], Any], done: Callable[[Job], None], *, patient: bool = False
    ) -> Job:
        job = Job(work, done, patient)
        job.run()
        if not isinstance(job.error, Hang):
            self._token.run_sync_soon(job.done, job)
        return job

    def abandon(self, job: Job) -> None:
        job.lost = True

    def collect(self) -> None:
        """Nothing waits here longer than trio takes for its next step."""


class ThreadPool(Pool):
    """Threads of our own, started when there is work; finished jobs share one wake-up of trio.

    To wake trio costs about as much as a sync of a fast disk, and the threads compete with its loop
    for the interpreter. So patient jobs are told when half of the open jobs have finished (a lone
    one at once) or `REPORT_JOBS_MAX` of them, and after `REPORT_LINGER_S` by a thread without work.
    One that is told later than that waits for the next job of its thread.

    A thread that is stuck in an abandoned job is replaced, up to a limit; should it come back, one
    thread too many ends.
    """

    def __init__(self, name: str, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._token = trio.lowlevel.current_trio_token()
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._finished: deque[Job] = deque()
        self._told = False
        # All numbers below are changed in trio's thread only.
        self._open_jobs = 0
        self._threads = 0
        self._alive = 0
        self._stuck: set[Job] = set()
        self._ended = trio.Event()

    def submit(
        self, work: Callable[[Job], Any], done: Callable[[Job], None], *, patient: bool = False
    ) -> Job:
        job = Job(work, done, patient)
        self._open_jobs += 1
        self._queue.put(job)
        if self._open_jobs > self._threads and self._threads < self._threads_max:
            self._start_thread(job)
        return job

    def _start_thread(self, job: Job) -> None:
        """Start a thread for ``job``. Where the system refuses it, those that live must do."""
        name = f"{self._name}-{self._alive + 1}"
        try:
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError:
            if self._threads == 0 and job.claim():
                job.error = OSError(errno.EAGAIN, "no thread could be started for it")
                self._finished.append(job)
                self._token.run_sync_soon(self.collect)
        else:
            self._threads += 1
            self._alive += 1

    def abandon(self, job: Job) -> None:
        job.lost = True
        self._open_jobs -= 1
        if not job.claim() and len(self._stuck) < LOST_THREADS_MAX:
            self._stuck.add(job)
            self._threads -= 1

    def _work(self) -> None:
        # A pool that outlives its trio run cannot happen, a stuck thread that does can.
        with suppress(trio.RunFinishedError):
            while True:
                untold = self._finished and not self._told
                try:
                    job = self._queue.get(timeout=REPORT_LINGER_S if untold else None)
                except Empty:
                    self._report()
                    continue
                if job is None:
                    break
                if job.claim():
                    job.run()
                    self._finished.append(job)
                    together = min(REPORT_JOBS_MAX, self._open_jobs / 2)
                    if not job.patient or len(self._finished) >= together:
                        self._report()
            self._token.run_sync_soon(self._thread_ended, threading.current_thread())

    def _report(self) -> None:
        if not self._told:
            self._told = True
            self._token.run_sync_soon(self.collect)

    def collect(self) -> None:
        # First this, then the jobs: a thread that still reads True has left its job before.
        self._told = False
        while self._finished:
            job = self._finished.popleft()
            if not job.lost:
                self._open_jobs -= 1
            elif job in self._stuck:
                self._stuck.remove(job)
                if self._threads < self._threads_max:
                    self._threads += 1
                else:
                    self._queue.put(None)
            job.done(job)

    def _thread_ended(self, thread: threading.Thread) -> None:
        thread.join()  # it has nothing left to do
        self.collect()
        self._alive -= 1
        if self._alive <= len(self._stuck):
            self._ended.set()

    async def aclose(self) -> None:
        """End the threads; those that are stuck end by themselves when they come back."""
        for _ in range(self._alive):
            self._queue.put(None)
        if self._alive > len(self._stuck):
            with trio.move_on_after(CALL_SILENCE_S_MAX, shield=True):
                await self._ended.wait()


@asynccontextmanager
async def open_pool(files: Files, name: str, threads_max: int) -> AsyncGenerator[Pool]:
    """Open the pool that fits ``files``; work must have settled before it is left."""
    if not files.blocking:
        yield InlinePool()
        return
    pool = ThreadPool(name, threads_max)
    try:
        yield pool
    finally:
        await pool.aclose()
