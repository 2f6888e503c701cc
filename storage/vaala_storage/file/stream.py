"""One stream as its only writer sees it: who waits, what is in flight, where the durable end is.

Everything here runs in trio's thread; the blocking work is `StreamFile`'s. At most one job of a
stream is in flight. What arrives meanwhile is the next batch: one line, one write, one sync.
No task belongs to a stream. Appends start a job when there is none, a finished job starts the next
one, and every waiter brings the deadline that finds a silent device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from vaala_storage.errors import Conflict, NotFound, StorageError, StorageFailed, StreamBroken
from vaala_storage.file.handles import Handles
from vaala_storage.file.lines import fits, make_line
from vaala_storage.file.mapping import storage_error
from vaala_storage.file.pool import Job, Pool
from vaala_storage.file.stream_file import Moved, Position, StreamFile
from vaala_storage.file.waiter import Waiter
from vaala_storage.file.watch import Watch
from vaala_storage.limits import READS_AGAIN_MAX, SYNC_SILENCE_S_MAX
from vaala_storage.log import Damage


class Stream:
    def __init__(self, file: StreamFile, pool: Pool, handles: Handles, watch: Watch) -> None:
        self.file = file
        self.position: Position | None = None
        """The durable end; None: not known yet."""
        self._pool = pool
        self._handles = handles
        self._watch = watch
        self._waiting: deque[Waiter] = deque()
        self._batch: list[Waiter] = []
        self._job: Job | None = None
        self._then: Callable[[Job], None] | None = None
        self._after: Position | None = None
        self._at_rest: trio.Event | None = None
        self._broken: str | None = None

    @property
    def forgettable(self) -> bool:
        return self._job is None and self._broken is None

    async def append(self, body: bytes, count: int, expected: int) -> int:
        if self._broken is not None:
            raise StreamBroken(self._broken)
        waiter = Waiter(body, count, expected)
        self._waiting.append(waiter)
        self._advance()
        try:
            return await waiter.outcome()
        except trio.Cancelled:
            if not waiter.begun and waiter in self._waiting:
                self._waiting.remove(waiter)
            raise

    async def recover(self) -> tuple[int, tuple[Damage, ...]]:
        """Bring the file to a certain state; see `LogStorage.recover`."""
        await self.idle()
        position = self.position if self._broken is not None else None

        def work(job: Job) -> tuple[Position, tuple[Damage, ...]]:
            if position is not None:
                self.file.roll_back(position, job)
            return self.file.load(job)

        self._handles.drop(self)
        job = self._start(work, self._recovered)
        while self._job is job:
            await self._rest()
        if isinstance(job.error, OSError) or job.lost:
            raise StreamBroken(self._broken or self._silence) from job.error
        if job.error is not None:
            raise job.error
        found: tuple[Position, tuple[Damage, ...]] = job.value
        return found[0].last, found[1]

    async def idle(self) -> None:
        """Return when nothing is in flight and nothing waits."""
        while self._job is not None:
            await self._rest()

    def forget(self) -> None:
        """Close the file and read its end anew when next needed. Only while at rest."""
        self._handles.drop(self)
        if self._broken is None:
            self.position = None

    def silent(self) -> None:
        """Give up the job in flight: it is taken for failed, and its thread for lost."""
        job = self._job
        self._pool.collect()
        if job is None or self._job is not job:  # it had finished
            return
        self._pool.abandon(job)
        self._job = None
        self._break(self._silence)
        self._rested()

    async def _rest(self) -> None:
        """Wait for the end of the job in flight, one silence at the longest."""
        if self._at_rest is None:
            self._at_rest = trio.Event()
        await self._at_rest.wait()

    def _rested(self) -> None:
        if self._at_rest is not None:
            self._at_rest.set()
            self._at_rest = None

    def _start(
        self, work: Callable[[Job], Any], then: Callable[[Job], None], *, patient: bool = False
    ) -> Job:
        self._then = then
        self._job = job = self._pool.submit(work, self._settled, patient=patient)
        self._watch.begin(self)
        return job

    def _settled(self, job: Job) -> None:
        if job is not self._job:  # it was silent, its waiters have been told
            self._handles.close(job.value if isinstance(job.value, int) else None)
            return
        then, self._job, self._then = self._then, None, None
        self._watch.end(self)
        assert then is not None
        then(job)
        self._rested()
        self._advance()

    def _advance(self) -> None:
        """Start what the waiting appends need, unless something is in flight."""
        if self._job is not None or self._broken is not None:
            return
        if self.position is None:
            if self._waiting:
                self._start(self.file.load, self._loaded)
            return
        self._batch = self._next_batch(self.position)
        if not self._batch:
            return
        position = self.position
        body = b",".join([waiter.body for waiter in self._batch])
        line = make_line(position.last + 1, sum(waiter.count for waiter in self._batch), body)
        self._after = Position(position.end + len(line), self._batch[-1].last)
        flush = partial(self.file.flush, self._handles.take(self), position, line)
        self._start(flush, self._flushed, patient=True)

    def _next_batch(self, position: Position) -> list[Waiter]:
        """Take from the queue, in order, what fits into one line.

        An append that expects another sequence ends the batch: whether it conflicts is known only
        when the batch before it is durable.
        """
        batch: list[Waiter] = []
        last, size = position.last, -1
        while self._waiting:
            waiter = self._waiting[0]
            if waiter.expected != last:
                if batch:
                    break
                self._waiting.popleft()
                waiter.fail(
                    Conflict(self.file.path, self.file.name, expected=waiter.expected, last=last)
                )
                continue
            if waiter.count == 0:
                if batch:
                    break
                self._waiting.popleft().settle(last)
                continue
            if batch and not fits(size + 1 + len(waiter.body)):
                break
            self._waiting.popleft()
            last, size = last + waiter.count, size + 1 + len(waiter.body)
            waiter.begun, waiter.last = True, last
            batch.append(waiter)
        return batch

    def _recovered(self, job: Job) -> None:
        if job.error is None:
            self.position, self._broken = job.value[0], None
        elif isinstance(job.error, NotFound):
            self.position, self._broken = None, None
        elif isinstance(job.error, OSError):
            why = f"{self.file.label}: recovery failed ({job.error.strerror}): try it again"
            self._break(why)

    def _loaded(self, job: Job) -> None:
        if job.error is None:
            self.position = job.value[0]
            return
        waiting, self._waiting = list(self._waiting), deque()
        for waiter in waiting:
            waiter.fail(self._as_ours(job.error))

    def _flushed(self, job: Job) -> None:
        batch, error = self._batch, job.error
        if isinstance(error, StreamBroken):
            self._break(str(error))
            return
        self._batch = []
        if error is None:
            self.position = self._after
            self._handles.put(self, job.value)
            for waiter in batch:
                waiter.settle(waiter.last)
        elif isinstance(error, Moved):
            self.position = None
            for waiter in reversed(batch):
                self._again(waiter)
        else:
            for waiter in batch:
                waiter.fail(self._as_ours(error))
            if not isinstance(error, StorageError):  # what it left is not known
                self._break(f"{self.file.label}: {error!r}: recover it")

    def _again(self, waiter: Waiter) -> None:
        waiter.moved += 1
        waiter.begun = False
        if waiter.moved < READS_AGAIN_MAX:
            self._waiting.appendleft(waiter)
        else:
            waiter.fail(StorageFailed(f"{self.file.label}: another writer keeps changing it"))

    def _as_ours(self, error: BaseException) -> BaseException:
        """Return an exception that one waiter can own."""
        if isinstance(error, OSError):
            ours: BaseException = storage_error(error, self.file.label)
        elif isinstance(error, StorageError):
            ours = type(error)(str(error))
        else:
            return error
        ours.__cause__ = error
        return ours

    @property
    def _silence(self) -> str:
        return (
            f"{self.file.label}: the device has not answered for {SYNC_SILENCE_S_MAX:g} s: "
            "recover it"
        )

    def _break(self, why: str) -> None:
        """Tell all that the outcome is unknown, and refuse what comes until `recover`."""
        self._broken = why
        told = [*self._batch, *self._waiting]
        self._batch, self._waiting = [], deque()
        for waiter in told:
            waiter.fail(StreamBroken(why))
