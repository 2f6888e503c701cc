"""What Ctrl-C and the signals that end a program do while an agent works."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
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

    def __init__(self, command: trio.CancelScope) -> None:
        self._ends = command
        self._target: Interruptible | None = None
        self._asking = trio.CancelScope()
        """Of the request to interrupt, while one is under way."""
        self.received = 0
        """The last signal; 0 for none."""
        self.interrupting = False
        """A turn was interrupted; it may not have ended yet."""

    @contextmanager
    def watching(self, target: Interruptible) -> Generator[None]:
        """Until the block ends, the run is the block: what is around it then closes in order."""
        command = self._ends
        with trio.CancelScope() as self._ends:
            self._target = target
            try:
                yield
            finally:
                self._asking.cancel()  # its connection closes next
                self._target = None
                self._ends = command

    async def heed(self) -> None:
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
                self._ends.cancel()
                # The run now ends in order, which takes its time; whoever cannot wait is heard.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                await trio.sleep_forever()

    async def _interrupt_turn(self) -> bool:
        if self._target is None:
            return False
        with trio.CancelScope() as self._asking:
            if not await self._target.interrupt_turn():
                return False
        # Also where the run has ended for it before the answer came.
        self.interrupting = True
        return True


@asynccontextmanager
async def heed_signals() -> AsyncGenerator[Interrupts]:
    """Heed signals while the block runs; one that ends the command cancels the block."""
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as command:
            interrupts = Interrupts(command)
            nursery.start_soon(interrupts.heed)
            yield interrupts
        nursery.cancel_scope.cancel()
