"""What Ctrl-C and the signals that end a program do while an agent works."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager

import trio

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def receive_signals() -> Generator[AsyncIterator[int]]:
    """Yield the signals that ask this program to end, as they come.

    One that the parent told us to ignore stays ignored: nohup, and a shell's background jobs.
    """
    wanted = [one for one in _ENDING if signal.getsignal(one) is not signal.SIG_IGN]
    with trio.open_signal_receiver(*wanted) as received:
        yield received
