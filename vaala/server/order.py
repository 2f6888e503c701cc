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

    def __init__(self, asked: object, before: Ticket | None) -> None:
        self._asked = asked
        self._before = before
        self._done = trio.Event()

    @property
    def in_front(self) -> tuple[object, ...]:
        """What came before in the lane and has not been done yet, the newest first."""
        found: list[object] = []
        ticket = self._before
        while ticket is not None and not ticket._done.is_set():
            found.append(ticket._asked)
            ticket = ticket._before
        return tuple(found)

    async def turn(self) -> None:
        """Wait until all that came before in the lane has been done."""
        if self._before is not None:
            await self._before._done.wait()

    def done(self) -> None:
        """The request has been done; the next one in the lane waits for it."""
        self._before = None  # or each ticket would keep all that ever were in front of it
        self._done.set()


class Lanes:
    """Bounded by the requests in flight: a lane is gone with the last ticket in it."""

    def __init__(self) -> None:
        self._last: dict[Hashable, Ticket] = {}

    def __len__(self) -> int:
        return len(self._last)

    def ticket(self, lane: Hashable, asked: object) -> Ticket:
        """Take the next place in a lane, or none for None: that waits for nothing and holds up
        nothing. Synchronous: the order of calls is the order."""
        if lane is None:
            return Ticket(asked, None)
        ticket = self._last[lane] = Ticket(asked, self._last.get(lane))
        return ticket

    @contextmanager
    def hold(self, lane: Hashable, ticket: Ticket) -> Generator[None]:
        """Let the next one in the lane begin when the block has ended, however it ends."""
        try:
            yield
        finally:
            ticket.done()
            if self._last.get(lane) is ticket:
                del self._last[lane]
