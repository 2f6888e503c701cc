"""`Outbox`: what one client is going to be sent, and the one task that sends it.

Answers go first, in the order in which they were put; they are bounded by reading nothing more
from a client that leaves too many unread (`Outbox.room`). Everything else is pulled: a source that
has something new is asked for one message when it is its turn, so nothing is encoded before the
client can take it, what waits may still be merged or replaced where it comes from, and sources
that always have something get the same share.
"""

from __future__ import annotations

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
        self._ready: dict[Source, None] = {}
        self._wake = trio.Event()
        self._room = trio.Event()
        self.sending = False
        """A message is on its way: after a cancel it may be half sent."""

    @property
    def answer_bytes(self) -> int:
        """Bytes of answers that wait, the one that is being sent included."""
        return self._bytes

    def put(self, message: bytes) -> None:
        """Add an answer. Never waits and never drops."""
        self._answers.append(message)
        self._bytes += len(message)
        self._wake.set()

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

    async def run(self, wire: Wire) -> None:
        """Send until cancelled. Raises `WireClosed`, and what a source raises."""
        while True:
            await self.send_answers(wire)
            if (event := self._pull()) is not None:
                await self._send(wire, event)
            else:
                self._wake = trio.Event()
                await self._wake.wait()

    async def send_answers(self, wire: Wire) -> None:
        """Send all the answers that wait. Raises `WireClosed`."""
        while self._answers:
            message = self._answers.popleft()
            await self._send(wire, message)
            self._bytes -= len(message)
            self._room.set()
            self._room = trio.Event()

    async def _send(self, wire: Wire, message: bytes) -> None:
        self.sending = True
        await wire.send(message)
        self.sending = False

    def _pull(self) -> bytes | None:
        """Return a message of the source that has waited longest."""
        while self._ready:
            source = next(iter(self._ready))
            del self._ready[source]
            message = source.next_message()
            if message is not None:
                self._ready[source] = None
                return message
        return None
