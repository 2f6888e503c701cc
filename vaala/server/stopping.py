"""`Stop`: the one way in which a server comes to its end, whoever wants it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import trio

from vaala.server import limits

log = logging.getLogger(__name__)

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Asked for by a signal, a client or idleness; the first one counts."""

    def __init__(self) -> None:
        self._asked = trio.Event()
        self._overdue = trio.Event()
        self._starting: trio.CancelScope | None = None
        self.reason = ""
        """Why, in words for the log and the clients."""

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self, reason: str) -> None:
        """Begin the end and return at once. Harmless when it has begun."""
        if not self._asked.is_set():
            self.reason = reason
            self._asked.set()
            if self._starting is not None:
                self._starting.cancel()

    async def wait(self) -> None:
        await self._asked.wait()

    def give_up(self) -> None:
        """The ordered end takes too long: let whoever owns the process end it."""
        self._overdue.set()

    async def wait_given_up(self) -> None:
        await self._overdue.wait()

    @contextmanager
    def start(self) -> Generator[None]:
        """Start something while the block runs: a wish to end cancels it."""
        with trio.CancelScope() as self._starting:
            if self.asked:
                self._starting.cancel()
            yield

    def started(self) -> None:
        """From now on a wish to end cancels nothing: whoever waits for it ends things in order."""
        self._starting = None


async def watch_place(is_in_place: Callable[[], bool], data: Path, stop: Stop) -> None:
    """Ask for the end when the data is no longer where it was; run until cancelled.

    Another server may own the same path then, and both would write there.
    """
    while True:
        await trio.sleep(limits.PLACE_PERIOD_S)
        if not await trio.to_thread.run_sync(is_in_place, abandon_on_cancel=True):
            break
    log.critical("%s was moved or removed: the server ends, before another one works there", data)
    stop.ask("its data directory was moved or removed")


async def heed_signals(stop: Stop) -> None:
    """Ask for the end at the first signal that ends programs; run until cancelled.

    A second one ends the process at once: what was promised is on disk, and the next start settles
    the rest. So does the server itself when its ordered end takes too long. A signal that the
    parent told us to ignore stays ignored, as with nohup.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_at_last, stop)
        await _receive_signals(stop)


async def _end_at_last(stop: Stop) -> None:
    await stop.wait()
    with trio.move_on_after(limits.END_S):
        await stop.wait_given_up()
    log.critical("the ordered end of the server takes too long: the process ends")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


async def _receive_signals(stop: Stop) -> None:
    wanted = [one for one in _ENDING if signal.getsignal(one) is not signal.SIG_IGN]
    if not wanted:
        return
    with trio.open_signal_receiver(*wanted) as signals:
        async for received in signals:
            stop.ask(f"signal {signal.Signals(received).name}")
            for one in wanted:
                signal.signal(one, signal.SIG_DFL)
            await trio.sleep_forever()
