"""`Outbox`: what one client is going to be sent, and the one task that sends it.

Answers go first, in the order in which they were put; they are bounded by reading nothing more
from a client that leaves too many unread (`Outbox.room`). Everything else is pulled: a source that
has something new is asked for one message when it is its turn, so nothing is encoded before the
client can take it, what waits may still be merged or replaced where it comes from, and sources
that always have something get the same share. What follows closely on what was pulled before waits
for `limits.EVENTS_PERIOD_S`, so that a burst of small pieces becomes few messages; after a pause
longer than that an event goes at once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque

import trio

from vaala.server import limits
from vaala.server.wire import Wire


class Source(ABC):
    """What has messages for a client, one after another."""

    @abstractmethod
    def next_message(self) -> bytes | None:
        """Return the next message, None when there is none now. Must not wait."""


class Outbox:
    """One task runs `run`; all the rest is synchronous but `room`."""

    def __init__(self) -> None:
        self._answers: deque[bytes] = deque()
        self._bytes = 0
        """Of answers that wait, the one that is being sent included."""
        self._ready: dict[Source, None] = {}
        self._wake = trio.Event()
        self._urgent = trio.Event()
        """Of what does not wait for the next period of events."""
        self._room = trio.Event()
        self._ended = False

    def put(self, message: bytes) -> None:
        """Add an answer. Never waits and never drops."""
        self._answers.append(message)
        self._bytes += len(message)
        self._hurry()

    async def room(self) -> None:
        """Wait until few enough answers are unread. Cancel: nothing has happened."""
        while self._bytes > limits.OUTBOX_BYTES_MAX:
            await self._room.wait()

    def ready(self, source: Source) -> None:
        """Say that a source may have messages. Harmless when that is known."""
        self._ready.setdefault(source)
        self._wake.set()

    def forget(self, source: Source) -> None:
        """Ask a source for nothing more."""
        self._ready.pop(source, None)

    def end(self) -> None:
        """Let `run` return when it has sent the answers that wait."""
        self._ended = True
        self._hurry()

    async def run(self, wire: Wire) -> None:
        """Send until `end`. Raises `WireClosed`. Cancel: a message may be half sent."""
        period_ends = -math.inf
        while True:
            answers = self._take_answers()
            events = [] if self._ended else self._pull(limits.EVENTS_BYTES - sum(map(len, answers)))
            if answers or events:
                # Together: each send wakes the client up.
                await wire.send(*answers, *events)
                self._answered(answers)
                if events:
                    period_ends = trio.current_time() + limits.EVENTS_PERIOD_S
            elif self._ended:
                return
            else:
                self._wake = trio.Event()
                await self._wake.wait()
                await self._until(period_ends)

    async def _until(self, period_ends: float) -> None:
        """Wait for the end of the period, or for what does not."""
        if self._answers or self._ended or trio.current_time() >= period_ends:
            return
        self._urgent = trio.Event()
        with trio.move_on_at(period_ends):
            await self._urgent.wait()

    def _hurry(self) -> None:
        self._wake.set()
        self._urgent.set()

    def _take_answers(self) -> list[bytes]:
        """Return the first answers, as many as go together."""
        taken: list[bytes] = []
        room = limits.EVENTS_BYTES
        while self._answers and room > 0:
            taken.append(self._answers.popleft())
            room -= len(taken[-1])
        return taken

    def _answered(self, answers: list[bytes]) -> None:
        if answers:
            self._bytes -= sum(map(len, answers))
            self._room.set()
            self._room = trio.Event()

    def _pull(self, room: int) -> list[bytes]:
        """Return messages of all sources in turn, as many as go together in ``room`` bytes."""
        pulled: list[bytes] = []
        while self._ready and room > 0:
            source = next(iter(self._ready))
            del self._ready[source]
            message = source.next_message()
            if message is not None:
                self._ready[source] = None
                pulled.append(message)
                room -= len(message)
        return pulled
