"""How work reaches the threads of a database, and what a cancel does to it."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import apsw
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from vaala_storage import Conflict, StorageFailed
from vaala_storage.sqlite.threads import Threads

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    connection = apsw.Connection(str(tmp_path / "t.db"))
    connection.execute("PRAGMA journal_mode = wal; CREATE TABLE t (name TEXT UNIQUE)").fetchall()
    connection.close()
    return tmp_path / "t.db"


@asynccontextmanager
async def writing(path: Path) -> AsyncGenerator[Threads]:
    threads = Threads(path, writing=True)
    async with threads.serving([apsw.Connection(str(path))]):
        yield threads


@asynccontextmanager
async def reading(path: Path, count: int = 1) -> AsyncGenerator[Threads]:
    threads = Threads(path, writing=False)
    async with threads.serving([apsw.Connection(str(path)) for _ in range(count)]):
        yield threads


class Gate:
    """Work that holds its thread until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()

    def __call__(self, connection: apsw.Connection) -> None:
        self.entered.set()
        assert self.released.wait(30)

    async def wait_entered(self) -> None:
        assert await trio.to_thread.run_sync(self.entered.wait, 30, abandon_on_cancel=True)


@contextmanager
def gate() -> Generator[Gate]:
    made = Gate()
    try:
        yield made
    finally:
        made.released.set()


class Insert:
    def __init__(self, name: str, error: Exception | None = None) -> None:
        self._name = name
        self._error = error

    def __call__(self, connection: apsw.Connection) -> str:
        connection.execute("INSERT INTO t VALUES (?)", (self._name,))
        if self._error is not None:
            raise self._error
        return self._name


def names(path: Path) -> list[str]:
    connection = apsw.Connection(str(path))
    try:
        return [str(name) for (name,) in connection.execute("SELECT name FROM t ORDER BY name")]
    finally:
        connection.close()


async def test_writes_that_wait_share_one_commit(path: Path) -> None:
    connection = apsw.Connection(str(path))
    commits: list[int] = []

    def committed() -> bool:
        commits.append(1)
        return False

    connection.set_commit_hook(committed)
    threads = Threads(path, writing=True)
    async with threads.serving([connection]), trio.open_nursery() as nursery:
        with gate() as held:
            nursery.start_soon(threads.run, held)
            await held.wait_entered()
            for number in range(10):
                nursery.start_soon(threads.run, Insert(str(number)))
            await wait_all_tasks_blocked()
    assert len(names(path)) == 10
    assert len(commits) == 2  # that of the gate, and one for all that waited


async def test_a_write_that_fails_is_undone_alone(path: Path) -> None:
    outcomes: dict[str, object] = {}

    async def insert(threads: Threads, key: str, work: Insert) -> None:
        try:
            outcomes[key] = await threads.run(work)
        except (Conflict, StorageFailed) as error:
            outcomes[key] = type(error)

    conflict = Conflict("p", "s", expected=0, last=1)
    async with writing(path) as threads, trio.open_nursery() as nursery:
        with gate() as held:
            nursery.start_soon(threads.run, held)
            await held.wait_entered()
            for key, work in (
                ("a", Insert("a")),
                ("b", Insert("b", conflict)),
                ("again", Insert("a", StorageFailed("after the insert"))),
                ("c", Insert("c")),
            ):
                nursery.start_soon(insert, threads, key, work)
                await wait_all_tasks_blocked()
    assert outcomes == {"a": "a", "b": Conflict, "again": StorageFailed, "c": "c"}
    assert names(path) == ["a", "c"]


async def test_a_write_that_waits_is_dropped_by_a_cancel(path: Path) -> None:
    async with writing(path) as threads, trio.open_nursery() as nursery:
        with gate() as held:
            nursery.start_soon(threads.run, held)
            await held.wait_entered()
            with trio.CancelScope() as scope:
                nursery.start_soon(cancel_when_blocked, scope)
                await threads.run(Insert("dropped"))
            assert scope.cancelled_caught
    assert names(path) == []


async def test_a_write_that_runs_is_finished_after_a_cancel(path: Path) -> None:
    with gate() as held:

        def work(connection: apsw.Connection) -> None:
            Insert("whole")(connection)
            held(connection)

        async with writing(path) as threads:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(threads.run, work)
                    await held.wait_entered()
                    scope.cancel()
            assert scope.cancelled_caught
            assert names(path) == []
            held.released.set()
            await threads.run(Insert("next"))
    assert names(path) == ["next", "whole"]


async def test_a_cancelled_read_is_interrupted_and_the_next_is_not(path: Path) -> None:
    async with reading(path) as threads:
        for _ in range(5):
            started = threading.Event()

            def endless(connection: apsw.Connection, started: threading.Event = started) -> None:
                started.set()
                connection.execute(ENDLESS).fetchall()

            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(threads.run, endless)
                    assert await trio.to_thread.run_sync(started.wait, 30, abandon_on_cancel=True)
                    scope.cancel()
            found = await threads.run(lambda c: c.execute("SELECT 1").fetchall())
            assert found == [(1,)]


async def test_one_read_does_not_wait_for_another(path: Path) -> None:
    async with reading(path, count=2) as threads, trio.open_nursery() as nursery:
        with gate() as held:
            nursery.start_soon(threads.run, held)
            await held.wait_entered()
            assert await threads.run(lambda c: c.execute("SELECT 1").fetchall()) == [(1,)]


async def test_closing_lets_queued_writes_finish_and_refuses_later_ones(path: Path) -> None:
    async with trio.open_nursery() as nursery:
        with gate() as held:
            async with writing(path) as threads:
                nursery.start_soon(threads.run, held)
                await held.wait_entered()
                nursery.start_soon(threads.run, Insert("queued"))
                await wait_all_tasks_blocked()
                held.released.set()
    assert names(path) == ["queued"]
    with pytest.raises(StorageFailed, match="closed"):
        await threads.run(Insert("late"))


async def test_leaving_waits_for_the_threads_even_when_cancelled(path: Path) -> None:
    with trio.CancelScope() as scope:
        async with writing(path) as threads:
            await threads.run(Insert("a"))
            assert [t for t in threading.enumerate() if t.name == "sqlite t.db"]
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert not [t for t in threading.enumerate() if t.name == "sqlite t.db" and t.is_alive()]


async def test_an_error_of_the_work_reaches_the_caller_as_it_is(path: Path) -> None:
    def work(_connection: apsw.Connection) -> None:
        raise KeyError("mine")

    async with reading(path) as reads, writing(path) as writes:
        for threads in (reads, writes):
            with pytest.raises(KeyError, match="mine"):
                await threads.run(work)
            with pytest.raises(StorageFailed, match="no such table"):
                await threads.run(lambda c: c.execute("SELECT * FROM missing").fetchall())


async def cancel_when_blocked(scope: trio.CancelScope) -> None:
    await wait_all_tasks_blocked()
    scope.cancel()
