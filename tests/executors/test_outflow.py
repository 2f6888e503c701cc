"""The output of a command whose exit comes at an awkward moment."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing

import trio

from vaala_executors import Exit
from vaala_executors.local.outflow import Outflow


async def test_an_exit_seen_between_two_looks_still_ends_the_output(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Somebody else holds the pipe open, so only the drain after the exit can end the output."""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    line, supervisor = socket.socketpair()
    supervisor.send(b"exit")
    looks: Iterator[Exit | None] = iter([None])

    def look() -> Exit | None:
        return next(looks, Exit(0, None))

    async def wait() -> Exit:
        raise AssertionError("the pipe was never closed")

    outflow = Outflow(reading, line, look, wait)
    with closing(line), closing(supervisor), closing(outflow), trio.fail_after(20):
        assert [chunk async for chunk in outflow] == []
    os.close(writing)
