"""The threads that own connections: one that writes, some that read."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import apsw
import outcome
import trio

from vaala_storage.errors import StorageFailed
from vaala_storage.sqlite.failures import translate
from vaala_storage.sqlite.jobs import Job, JobQueue
from vaala_storage.sqlite.limits import STEPS_BETWEEN_CHECKS, WRITES_PER_COMMIT_MAX

T = TypeVar("T")
Work: TypeAlias = Callable[[apsw.Connection], T]


class Threads:
    """Threads that serve one queue of jobs, each on a connection of its own."""

    def __init__(self, path: Path, *, writing: bool) -> None:
        self._path = path
        self._writing = writing
        self._jobs = JobQueue()
        self._closed = False

    async def run(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction in one of the threads.

        Cancellation returns at once. Work that has not begun is dropped; after that a read is
        stopped soon, and a write is finished.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise StorageFailed(f"{self._path}: the database was closed")
        job = Job(work)
        self._jobs.put(job)
        return await job.wait()

    @asynccontextmanager
    async def serving(self, connections: Sequence[apsw.Connection]) -> AsyncGenerator[None]:
        """Run one thread for each connection, which it closes in the end.

        Leaving lets queued jobs finish; it waits, cancelled or not, for what is being written:
        at most the wait for a lock and one commit.
        """
        token = trio.lowlevel.current_trio_token()
        ended = [trio.Event() for _ in connections]

        def main(connection: apsw.Connection, end: trio.Event) -> None:
            self._serve(connection)
            connection.close(force=True)
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(end.set)

        for connection, end in zip(connections, ended, strict=True):
            threading.Thread(
                target=main, args=(connection, end), name=f"sqlite {self._path.name}", daemon=True
            ).start()
        try:
            yield
        finally:
            self._closed = True
            self._jobs.close()
            with trio.CancelScope(shield=True):
                for end in ended:
                    await end.wait()

    def _serve(self, connection: apsw.Connection) -> None:
        while (job := self._jobs.take()) is not None:
            if self._writing:
                self._write([job, *self._more()], connection)
            elif not job.left:
                job.finish(outcome.capture(self._read, job, connection))

    def _more(self) -> list[Job[Any]]:
        jobs: list[Job[Any]] = []
        while len(jobs) < WRITES_PER_COMMIT_MAX - 1 and (job := self._jobs.take_waiting()):
            jobs.append(job)
        return jobs

    def _read(self, job: Job[T], connection: apsw.Connection) -> T:
        # Not by interrupt(): that is lost when it comes between two statements.
        connection.set_progress_handler(lambda: job.left, STEPS_BETWEEN_CHECKS)
        try:
            connection.execute("BEGIN")
            try:
                return job.work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise self._translated(error, connection) from error

    def _write(self, jobs: list[Job[Any]], connection: apsw.Connection) -> None:
        """Run jobs as one commit; each is undone alone when it fails alone."""
        running = [job for job in jobs if not job.left]
        if not running:
            return
        done: list[tuple[Job[Any], Any]] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in running:
                result = outcome.capture(_in_savepoint, job, connection)
                if isinstance(result, outcome.Value):
                    done.append((job, result))
                elif connection.in_transaction:
                    job.finish(self._mapped(result, connection))
                    running = [other for other in running if other is not job]
                else:  # SQLite gave up the whole transaction: disk full, device error
                    result.unwrap()
            connection.execute("COMMIT")
        except Exception as error:
            if connection.in_transaction:
                with suppress(apsw.Error):  # or this thread, and with it every write, would end
                    connection.execute("ROLLBACK")
            for job in running:
                job.finish(self._mapped(outcome.Error(error), connection))
            return
        for job, result in done:
            job.finish(result)

    def _mapped(self, result: outcome.Error, connection: apsw.Connection) -> outcome.Error:
        if isinstance(result.error, apsw.Error):
            error = self._translated(result.error, connection)
            error.__cause__ = result.error
            return outcome.Error(error)
        return outcome.Error(result.error)

    def _translated(self, error: apsw.Error, connection: apsw.Connection) -> Exception:
        return translate(
            error, self._path, writing=self._writing, errno_below=connection.system_errno
        )


def _in_savepoint(job: Job[T], connection: apsw.Connection) -> T:
    connection.execute("SAVEPOINT job")
    try:
        value = job.work(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO job; RELEASE job")
        raise
    connection.execute("RELEASE job")
    return value
