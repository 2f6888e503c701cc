"""What Ctrl-C and the signals that end a program do while an agent works."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

import trio

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptible(Protocol):
    async def interrupt_turn(self) -> bool:
        """Interrupt the running turn, without waiting for its end; False when none runs."""
        ...


class Interrupts:
    """The first Ctrl-C interrupts the turn, the second ends the run, the third the process.

    Every other signal that ends a program, and Ctrl-C while no turn runs, ends the run.
    """

    def __init__(self) -> None:
        self.target: Interruptible | None = None
        self.received = 0
        """The last signal; 0 for none."""

    async def heed(self, run: trio.CancelScope) -> None:
        """Heed signals until cancelled."""
        # One that the parent told us to ignore stays ignored: nohup, and jobs in the background.
        wanted = [one for one in _ENDING if signal.getsignal(one) is not signal.SIG_IGN]
        if not wanted:
            return
        with trio.open_signal_receiver(*wanted) as signals:
            async for received in signals:
                first, self.received = not self.received, received
                if first and received == signal.SIGINT and await self._interrupt_turn():
                    continue
                run.cancel()
                # The run now ends in order, which takes its time; whoever cannot wait is heard.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                await trio.sleep_forever()

    async def _interrupt_turn(self) -> bool:
        return self.target is not None and await self.target.interrupt_turn()


@asynccontextmanager
async def heed_signals() -> AsyncGenerator[Interrupts]:
    """Heed signals while the block runs; one that ends the run cancels the block."""
    interrupts = Interrupts()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as run:
            nursery.start_soon(interrupts.heed, run)
            yield interrupts
        nursery.cancel_scope.cancel()
