"""The search's time limit, which also stops a regular expression that does not come to an end."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

MARGIN_SECONDS = 2
"""After the time is up, until the process is killed: `re` lets a signal handler interrupt it, but
other code may not come to a point where one runs."""


class TimeUp(Exception):
    """Raised inside `Alarm.interrupting` only, so never in the middle of an answer."""


class Alarm:
    def __init__(self, seconds: int) -> None:
        self.late = False
        self._interrupting = False
        signal.signal(signal.SIGALRM, self._ring)
        signal.alarm(seconds)

    @contextmanager
    def interrupting(self) -> Generator[None]:
        self._interrupting = True
        try:
            yield
        finally:
            self._interrupting = False

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        self.late = True
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(MARGIN_SECONDS)
        if self._interrupting:
            raise TimeUp
