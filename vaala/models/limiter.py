"""`Limiter`: the calls of all sessions to one provider with one key, in turn after a refusal.

While nothing is refused every call goes at once. When the provider says that it is busy, nobody
asks before the time that it names, or that the retry policy sets where it names none. Then calls
go in the order in which they were first wanted, a repeated one in its old place: one alone, and
with every one that is let through two more, until the number is reached that was let through
before the last refusal. There one goes alone again, since that may be the limit; a refusal makes
all wait anew. A minute without a refusal and without anyone who waits, and all is forgotten.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from typing import TypeAlias

import trio
from msgspec import Struct, field

from vaala.models.base import ModelFailure
from vaala.models.limits import CALM_S, LIMITERS_MAX, NOT_REFUSED_S, SAT_THROUGH_S
from vaala.models.provider import Provider

Waiting: TypeAlias = Callable[[str, float | None], AbstractContextManager[None]]
"""Shows a wait while it lasts: its reason, and the seconds until it is over where that is known."""

_BUSY_STATUSES = (None, 498, 503, 529)
"""Of failures of kind ``overloaded``; another 5xx may come of one request alone."""


def is_busy(failure: ModelFailure) -> bool:
    """Tell whether a failure says that the provider wants less of everybody for a while."""
    if not failure.retryable:
        return False
    if failure.kind == "overloaded":
        return failure.retry_after_s is not None or failure.status in _BUSY_STATUSES
    return failure.kind == "rate_limit"


class NotSent(ModelFailure):
    """A call was not made, since the provider refuses all calls and no end of that is near."""


class Sent(Struct, eq=False):
    """A call that was let out and has not ended."""

    opening: int
    at: float


class Place(Struct, eq=False):
    """A place in the order, of one call and its repetitions."""

    number: int
    waiting: Waiting
    woken: trio.Event = field(default_factory=trio.Event)


class _Refusal(Struct, frozen=True):
    failure: ModelFailure
    until: float
    asked_again_at: float
    """Sooner than ``until`` when that is so far away that nobody waits for it."""


class Limiter:
    """See the module. Holds one number for each call that waits or runs, and no history."""

    def __init__(self, requests_max: int | None = None) -> None:
        self.requests_max = requests_max
        """Calls at the same time, from sending to the end of the answer; None: any number."""
        self._numbers = count()
        self._waiting: list[Place] = []
        """In order; the first one alone looks whether it may go."""
        self._running = 0
        self._refusal: _Refusal | None = None
        self._opening = 0
        """Numbers the times between two refusals: of calls that went out together and are refused
        together, one is news."""
        self._unanswered: list[Sent] = []
        """Calls of this opening that may still be refused, oldest first."""
        self._width = 1
        """How many of them there may be."""
        self._through = 0
        """Calls of this opening that were let through."""
        self._through_before = 1
        self._refused_in_a_row = 0
        self._progress_at = 0.0
        """When a call was last let through."""

    @property
    def idle(self) -> bool:
        """Nothing would be lost with it."""
        self._forget(trio.current_time())
        return self._refusal is None and not self._running and not self._waiting

    def place(self, waiting: Waiting) -> Place:
        """Return the next place in the order."""
        return Place(next(self._numbers), waiting)

    async def let_out(self, place: Place) -> Sent:
        """Wait until the call of ``place`` may go; `ended` must follow.

        Raises `NotSent` when the wait that the provider wants is longer than `SAT_THROUGH_S`, or
        when nobody was let through for so long. Cancel: the place is free, the next one goes.
        """
        began = trio.current_time()
        self._forget(began)
        insort(self._waiting, place, key=lambda one: one.number)
        try:
            while not self._may_go(place, now := trio.current_time()):
                self._give_up(now, began)
                place.woken = trio.Event()
                give_up_at = max(began, self._progress_at) + SAT_THROUGH_S
                with (
                    place.waiting(*self._reason(now, give_up_at)),
                    trio.move_on_at(self._look_again_at(place, now, give_up_at)),
                ):
                    await place.woken.wait()
            sent = Sent(self._opening, now)
            self._unanswered.append(sent)
            self._running += 1
            return sent
        finally:
            self._waiting.remove(place)
            self._wake_first()

    def answered(self, sent: Sent) -> None:
        """The answer to a call has begun: it was let through."""
        self._progress_at = trio.current_time()
        if sent in self._unanswered:
            self._let_through(sent)
            self._wake_first()

    def refused(
        self, sent: Sent, failure: ModelFailure, backoff_s: Callable[[ModelFailure, int], float]
    ) -> None:
        """The provider is busy (`is_busy`). ``backoff_s`` tells the wait after a failure and so
        many refusals in a row; never less than ``failure.retry_after_s``."""
        now = trio.current_time()
        wait_s = failure.retry_after_s or 0.0
        if sent.opening == self._opening:
            follows = self._refusal is not None and not self._through
            self._refused_in_a_row = self._refused_in_a_row + 1 if follows else 1
            wait_s = backoff_s(failure, self._refused_in_a_row)
            self._through_before = max(1, self._through)
            self._opening += 1
            self._unanswered.clear()
            self._width, self._through = 1, 0
            self._refusal = None
        until = now + wait_s
        if self._refusal is None or until > self._refusal.until:
            asked_again_at = until if wait_s <= SAT_THROUGH_S else now + SAT_THROUGH_S
            self._refusal = _Refusal(failure, until, asked_again_at)
        for place in self._waiting:
            place.woken.set()

    def ended(self, sent: Sent) -> None:
        """A call has ended, however it did."""
        self._running -= 1
        if sent in self._unanswered:
            self._unanswered.remove(sent)
        self._wake_first()

    def remaining_s(self) -> float:
        """Return the seconds for which nobody may ask."""
        if self._refusal is None:
            return 0.0
        return max(0.0, self._refusal.until - trio.current_time())

    def _may_go(self, place: Place, now: float) -> bool:
        if self._waiting[0] is not place or self._full:
            return False
        if self._refusal is None:
            return True
        if now < self._refusal.asked_again_at:
            return False
        while self._unanswered and self._unanswered[0].at + NOT_REFUSED_S <= now:
            self._let_through(self._unanswered[0])
        before = self._through + len(self._unanswered)
        if self._through < self._through_before <= before:
            return False
        return len(self._unanswered) < self._width

    @property
    def _full(self) -> bool:
        return self.requests_max is not None and self._running >= self.requests_max

    def _let_through(self, sent: Sent) -> None:
        self._unanswered.remove(sent)
        if self._refusal is not None:
            self._through += 1
            self._width = 1 if self._through == self._through_before else self._width + 1

    def _give_up(self, now: float, began: float) -> None:
        refusal = self._refusal
        if refusal is None or self._full:
            return
        text = refusal.failure.message
        if not now < refusal.asked_again_at < refusal.until:
            # It is no longer wait than anybody sits through, and yet nothing may have come of it.
            if now < max(began, self._progress_at) + SAT_THROUGH_S:
                return
            text += f"; no call got through for {SAT_THROUGH_S:g} s"
        remaining_s = self.remaining_s()
        raise NotSent(
            refusal.failure.kind,
            text,
            retryable=True,
            retry_after_s=remaining_s or None,
            status=refusal.failure.status,
        )

    def _look_again_at(self, place: Place, now: float, give_up_at: float) -> float:
        """Return when to look again if nobody wakes the place before that."""
        refusal = self._refusal
        if refusal is None or self._full:
            return math.inf
        at = give_up_at
        if self._waiting[0] is place:
            if now < refusal.asked_again_at:
                at = min(at, refusal.asked_again_at)
            elif self._unanswered:
                at = min(at, self._unanswered[0].at + NOT_REFUSED_S)
        return at

    def _reason(self, now: float, give_up_at: float) -> tuple[str, float | None]:
        refusal = self._refusal
        if refusal is None or self._full:
            return f"its turn: no more than {self.requests_max} calls at once", None
        if now < refusal.asked_again_at:
            return f"{refusal.failure.message}; nobody asks before", refusal.until - now
        return f"its turn among all calls; {refusal.failure.message}", give_up_at - now

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[0].woken.set()

    def _forget(self, now: float) -> None:
        refusal = self._refusal
        if refusal is not None and not self._waiting and refusal.until + CALM_S <= now:
            self._refusal = None


class Limiters:
    """The limiters of a runtime, one for each server and key."""

    def __init__(self) -> None:
        self._limiters: dict[tuple[object, ...], Limiter] = {}
        """The one that was used last stands last."""

    def of(self, provider: Provider) -> Limiter:
        """Return the limiter of a provider, whatever name and models it has."""
        # A key may stand in a header or a parameter of the URL, too, or be asked for late.
        given = (frozenset(provider.headers.items()), frozenset(provider.query.items()))
        key = (provider.base_url, provider.key, provider.key_source, *given)
        limiter = self._limiters.pop(key, None) or Limiter()
        limiter.requests_max = provider.requests_max
        self._limiters[key] = limiter
        if len(self._limiters) > LIMITERS_MAX:
            idle = (one for one, limiter in self._limiters.items() if limiter.idle)
            del self._limiters[next(idle, next(iter(self._limiters)))]
        return limiter
