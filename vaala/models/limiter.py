"""`Limiter`: who may call a provider, when it has said that there are too many requests.

One for each provider and key, shared by all sessions that use it. While nothing was refused it lets
everybody through. After a refusal all wait until the time that the provider named; then they go in
the order in which they came, one at first, and more at once with each one that is answered. Another
refusal closes it again. When nobody waits any more, it is as if nothing had been refused.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

import trio

from vaala.models.base import ModelFailure

LIMITING = ("rate_limit", "overloaded")
"""The kinds of failure that mean: fewer requests."""


class Limiter:
    """See the module. Not for threads; it keeps a few numbers, and one event for each waiter."""

    def __init__(self) -> None:
        self._tickets = count()
        self._waiting: dict[int, trio.Event] = {}
        self._closed_until = -math.inf
        self._limited = False
        self._unanswered = 0
        self._window = 1

    def ticket(self) -> int:
        """Return a place in the order; one call keeps it over all of its attempts."""
        return next(self._tickets)

    @property
    def closed_s(self) -> float | None:
        """Seconds until somebody may call, None while everybody may."""
        if not self._limited:
            return None
        return max(0.0, self._closed_until - trio.current_time())

    @asynccontextmanager
    async def turn(self, ticket: int) -> AsyncGenerator[Turn]:
        """Wait until the call may go out; the block makes it, and tells that it was answered.

        What it raises of kind `LIMITING` closes the way for all. Cancel: at once, and the next
        one goes.
        """
        await self._enter(ticket)
        turn = Turn(self)
        try:
            yield turn
        except ModelFailure as failure:
            if failure.kind in LIMITING:
                self.close(failure.retry_after_s or 0.0)
            raise
        finally:
            turn.done()

    def close(self, seconds: float) -> None:
        """Let nobody call for so long, and then one at first."""
        self._limited = True
        self._window = 1
        self._closed_until = max(self._closed_until, trio.current_time() + seconds)

    async def _enter(self, ticket: int) -> None:
        event = trio.Event()
        self._waiting[ticket] = event
        try:
            while not self._may_go(ticket):
                first = ticket == min(self._waiting)
                # The first keeps the time for all.
                until = self._closed_until if first and self._is_closed else math.inf
                with trio.move_on_at(until):
                    await event.wait()
                self._waiting[ticket] = event = trio.Event()
            self._unanswered += self._limited
        finally:
            del self._waiting[ticket]
            self._next()

    @property
    def _is_closed(self) -> bool:
        return trio.current_time() < self._closed_until

    def _may_go(self, ticket: int) -> bool:
        if not self._limited:
            return True
        free = not self._is_closed and self._unanswered < self._window
        return free and ticket == min(self._waiting)

    def _next(self) -> None:
        """Have the first one look again."""
        if self._waiting:
            self._waiting[min(self._waiting)].set()
        elif self._unanswered == 0 and not self._is_closed:
            self._limited = False

    def left(self, *, counted: bool, answered: bool) -> None:
        """For `Turn`: a call is answered, or over."""
        self._unanswered -= counted
        if answered and counted:
            self._window += 1
        self._next()


class Turn:
    """One call that was let through."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._counted = limiter.closed_s is not None
        self._open = True

    def answered(self) -> None:
        """The provider has taken the call: the answer begins."""
        if self._open:
            self._open = False
            self._limiter.left(counted=self._counted, answered=True)

    def done(self) -> None:
        if self._open:
            self._open = False
            self._limiter.left(counted=self._counted, answered=False)
