"""The one policy for trying a model call again.

Pure: it tells whether and how long to wait; `vaala.models.caller` waits, shows the wait, and can be
cancelled in it. A call is tried again only before it had visible output, or with that output
replaced openly; that is the part of whoever knows what was shown.
"""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

from msgspec import Struct

from vaala.models.base import ModelFailure
from vaala.models.limits import SAT_THROUGH_S


class RetryPolicy(Struct, frozen=True):
    """Back-off that doubles, with jitter, inside a budget of attempts and of time.

    The defaults: an overload of a minute or two is outlived.
    """

    attempts_max: int = 10
    """Calls in all, the first one included."""
    elapsed_max_s: float = SAT_THROUGH_S
    """From the first call's start to the last call's start, without what it waited for others."""
    first_wait_s: float = 1.0
    wait_max_s: float = 30.0

    def wait_s(self, failure: ModelFailure, failures: int, rng: random.Random) -> float:
        """Return the seconds to wait after so many failures (from 1) in a row.

        Never less than the failure's ``retry_after_s``; the jitter is added on top of it, so that
        callers which were refused together do not come back together.
        """
        # 2.0 ** 1024 overflows; long before, the maximum decides.
        backoff_s = min(self.wait_max_s, self.first_wait_s * 2.0 ** min(failures - 1, 64))
        if failure.retry_after_s is None:
            return backoff_s * rng.uniform(0.5, 1.0)
        return max(failure.retry_after_s, backoff_s / 2) + backoff_s * rng.uniform(0.0, 0.5)

    def allows(self, failure: ModelFailure, attempt: int, elapsed_s: float) -> bool:
        """Tell whether to call again after ``attempt`` calls (from 1) failed; ``elapsed_s`` is the
        time from the first one's start to the start of the next."""
        return failure.retryable and attempt < self.attempts_max and elapsed_s <= self.elapsed_max_s


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
