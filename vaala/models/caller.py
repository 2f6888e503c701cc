"""`Caller`: one call to a model, made in its turn, and again where that can help."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import TypeAlias

import trio

from vaala.models.base import Model, ModelFailure
from vaala.models.limiter import Limiter, NotSent, Waiting, is_busy
from vaala.models.retry import RetryPolicy

Answered: TypeAlias = Callable[[], None]
"""To be called when the answer to a call has begun."""


def unseen(reason: str, seconds: float | None) -> AbstractContextManager[None]:
    """A `Waiting` that shows nothing."""
    return nullcontext()


class Caller:
    """The attempts of one call. Each is made in a `turn`; after one that failed `wait_s` says
    whether there is to be another, and `rest` waits for it.

    The budgets of the policy count what the call itself takes, and the waits that its own failures
    bring; the time in which others go first counts for neither. A model without a limiter of its
    own shares none: only the call itself waits when it is refused.
    """

    def __init__(
        self,
        model: Model,
        rng: random.Random,
        waiting: Waiting = unseen,
        policy: RetryPolicy | None = None,
    ) -> None:
        self._limiter = model.limiter or Limiter()
        self._place = self._limiter.place(waiting)
        self._rng = rng
        self._waiting = waiting
        self._policy = policy or RetryPolicy()
        self._elapsed_s = 0.0
        self.attempt = 1
        """The number of the one that is made, or was made last."""

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Answered]:
        """Wait until the call may be made; the body makes it, and calls what it is given when the
        answer has begun.

        A `ModelFailure` that leaves the body is what the call ended with. Raises `NotSent`, before
        the body, when the provider refuses all calls for too long. Cancel: the next caller goes.
        """
        try:
            sent = await self._limiter.let_out(self._place)
        except NotSent:
            self.attempt = max(1, self.attempt - 1)
            raise
        began = trio.current_time()
        try:
            yield lambda: self._limiter.answered(sent)
        except ModelFailure as failure:
            if is_busy(failure):
                self._limiter.refused(sent, failure, self._backoff)
            raise
        finally:
            self._elapsed_s += trio.current_time() - began
            self._limiter.ended(sent)

    def wait_s(self, failure: ModelFailure) -> float | None:
        """Return the seconds before another attempt, at least, or None: there is to be none."""
        if isinstance(failure, NotSent):
            return None
        if is_busy(failure):
            wait_s = self._limiter.remaining_s()
        else:
            wait_s = self._backoff(failure, self.attempt)
        allowed = self._policy.allows(failure, self.attempt, self._elapsed_s + wait_s)
        return wait_s if allowed else None

    async def rest(self, failure: ModelFailure, wait_s: float) -> None:
        """Wait before another attempt, for what `wait_s` told; a busy provider is waited for in
        the `turn`, with all others. Cancel: nothing remains of it."""
        if not is_busy(failure):
            with self._waiting(f"{failure.message}; trying again", wait_s):
                await trio.sleep(wait_s)
        self._elapsed_s += wait_s
        self.attempt += 1

    def _backoff(self, failure: ModelFailure, times: int) -> float:
        return self._policy.wait_s(failure, times, self._rng)
