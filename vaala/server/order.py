"""`Lanes`: what one client asks for one thing is done in the order in which it asked.

Requests are worked on side by side, so that one that waits holds up nothing else. Those that
change the same thing stand in one lane: each begins when the one before has been done.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager

import trio


class Ticket:
    """A place in a lane, taken when the request is read."""

    def __init__(self, before: trio.Event | None) -> None:
        self._before = before
        self._done = trio.Event()

    @property
    def is_first(self) -> bool:
        """Whatever came before in the lane has been done."""
        return self._before is None or self._before.is_set()

    async def turn(self) -> None:
        """Wait until all that came before in the lane has been done."""
        if self._before is not None:
            await self._before.wait()

    @property
    def done(self) -> trio.Event:
        """Set it when the request has been done; the next one in the lane waits for it."""
        return self._done


class Lanes:
    """Bounded by the requests in flight: a lane is gone with the last ticket in it."""

    def __init__(self) -> None:
        self._last: dict[Hashable, Ticket] = {}

    def __len__(self) -> int:
        return len(self._last)

    def ticket(self, lane: Hashable) -> Ticket:
        """Take the next place in a lane, or none for None: that waits for nothing and holds up
        nothing. Synchronous: the order of calls is the order."""
        if lane is None:
            return Ticket(None)
        last = self._last.get(lane)
        ticket = self._last[lane] = Ticket(None if last is None else last.done)
        return ticket

    @contextmanager
    def hold(self, lane: Hashable, ticket: Ticket) -> Generator[None]:
        """Let the next one in the lane begin when the block has ended, however it ends."""
        try:
            yield
        finally:
            ticket.done.set()
            if self._last.get(lane) is ticket:
                del self._last[lane]
