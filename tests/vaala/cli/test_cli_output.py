"""stdout and stderr through one thread: order, a slow reader, a reader that has gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from vaala.cli.output import CLOSING_S, STDERR, STDOUT, WAITING_BYTES_MAX, Output, ReaderGone


@dataclass
class Pipes:
    """An output, and what its readers read from."""

    output: Output
    out: int
    err: int


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    yield Pipes(Output(out=to_out, err=to_err), out, err)
    for descriptor in (out, to_out, err, to_err):
        with suppress(OSError):  # a test may have closed it
            os.close(descriptor)


async def test_what_is_put_is_written_in_order(pipes: Pipes) -> None:
    output = pipes.output
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.run)
        for number in range(100):
            output.put(STDOUT, f"{number} ")
            output.put(STDERR, f"note {number} ")
        await output.drain()
        nursery.cancel_scope.cancel()
    assert os.read(pipes.out, 65536).decode().split() == [str(n) for n in range(100)]
    assert os.read(pipes.err, 65536).decode().count("note") == 100


async def test_a_reader_that_stops_holds_back_whoever_fills_the_output(
    pipes: Pipes,
) -> None:
    output = pipes.output
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.run)
        await output.wait_room()
        output.put(STDOUT, "x" * 100_000)  # more than a pipe holds
        await wait_all_tasks_blocked()
        output.put(STDOUT, "y" * (WAITING_BYTES_MAX + 1))
        waited = trio.Event()

        async def fill() -> None:
            await output.wait_room()
            waited.set()

        nursery.start_soon(fill)
        await wait_all_tasks_blocked()
        assert not waited.is_set()
        await trio.to_thread.run_sync(_read_all, pipes.out, 100_000 + WAITING_BYTES_MAX + 1)
        await output.drain()
        await waited.wait()
        nursery.cancel_scope.cancel()


def _read_all(descriptor: int, size: int) -> None:
    while size:
        size -= len(os.read(descriptor, size))


async def test_a_reader_that_has_gone_ends_the_output(pipes: Pipes) -> None:
    os.close(pipes.out)
    output = pipes.output
    output.put(STDOUT, "x")
    with pytest.raises(ReaderGone):
        await output.run()


async def test_notes_that_nobody_reads_are_no_failure(pipes: Pipes) -> None:
    os.close(pipes.err)
    output = pipes.output
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.run)
        output.put(STDERR, "note")
        output.put(STDOUT, "answer")
        await output.drain()
        nursery.cancel_scope.cancel()
    assert os.read(pipes.out, 100) == b"answer"


async def test_the_end_does_not_wait_for_ever_on_a_reader_that_does_not_read(
    pipes: Pipes, autojump_clock: trio.testing.MockClock
) -> None:
    output = pipes.output
    output.put(STDOUT, "x")
    with trio.fail_after(CLOSING_S + 1):
        await output.drain()
