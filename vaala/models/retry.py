"""The one policy for trying a model call again.

Pure: it tells how long to wait, and the caller waits, shows the wait, and can be cancelled in it.
A call is tried again only before it had visible output, or with that output replaced openly; that
too is the caller's part, since only it knows what was shown.
"""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

from msgspec import Struct

from vaala.models.base import ModelFailure


class RetryPolicy(Struct, frozen=True):
    """Back-off that doubles, with jitter, inside a budget of attempts and of time.

    The defaults: an overload of a minute or two is outlived; a person is not kept waiting for
    more than five minutes by something that is not shown as an error.
    """

    attempts_max: int = 6
    """Calls in all, the first one included."""
    elapsed_max_s: float = 300.0
    """From the first call's start to the last call's start."""
    first_wait_s: float = 1.0
    wait_max_s: float = 30.0

    def delay(
        self, failure: ModelFailure, attempt: int, elapsed_s: float, rng: random.Random
    ) -> float | None:
        """Return the seconds to wait after ``attempt`` calls (from 1) failed, or None: give up.

        Never less than the failure's ``retry_after_s``; the jitter is added on top of it, so that
        callers which were refused together do not come back together.
        """
        if not failure.retryable or attempt >= self.attempts_max:
            return None
        # 2.0 ** 1024 overflows; long before, the maximum decides.
        backoff_s = min(self.wait_max_s, self.first_wait_s * 2.0 ** min(attempt - 1, 64))
        if failure.retry_after_s is None:
            wait_s = backoff_s * rng.uniform(0.5, 1.0)
        else:
            wait_s = max(failure.retry_after_s, backoff_s / 2) + backoff_s * rng.uniform(0.0, 0.5)
        return wait_s if elapsed_s + wait_s <= self.elapsed_max_s else None


def last_words(failure: ModelFailure, attempts: int, now: datetime) -> str:
    """Return the line that tells the user why no further call is made.

    A wait that the provider asked for and that is too long to sit through is told with the time
    of day at which it is over; ``now`` is the user's local time.
    """
    tried = f" (tried {attempts} times)" if attempts > 1 else ""
    if not failure.retryable or failure.retry_after_s is None:
        return f"{failure.message}{tried}"
    at = now + timedelta(seconds=math.ceil(failure.retry_after_s))
    clock = at.strftime("%H:%M:%S") if at.date() == now.date() else at.strftime("%Y-%m-%d %H:%M")
    return f"{failure.message}{tried}; try again at {clock}"
