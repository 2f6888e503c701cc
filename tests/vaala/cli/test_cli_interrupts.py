"""What Ctrl-C does while an agent works."""

from __future__ import annotations

import os
import signal

import trio
import trio.testing

from vaala.cli.interrupts import heed_signals


class Turn:
    """Is told to stop, and answers when the connection is gone already."""

    def __init__(self) -> None:
        self.asked, self.closed = trio.Event(), trio.Event()

    async def interrupt_turn(self) -> bool:
        self.asked.set()
        await self.closed.wait()
        raise ConnectionError("this client has closed it")


async def test_a_run_that_ends_by_its_interrupt_waits_for_no_answer() -> None:
    turn = Turn()
    with trio.fail_after(10):
        async with heed_signals() as interrupts:
            await trio.testing.wait_all_tasks_blocked()
            with interrupts.watching(turn):
                os.kill(os.getpid(), signal.SIGINT)
                await turn.asked.wait()
            turn.closed.set()
            await trio.testing.wait_all_tasks_blocked()
    assert (interrupts.received, interrupts.interrupting) == (signal.SIGINT, True)
