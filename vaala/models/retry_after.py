"""Retry-After as seconds from now, from any of its forms."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how long the server wants to be left alone; None when it does not say.

    Takes ``retry-after-ms``, seconds, and an HTTP date. A date counts from the answer's own
    ``Date``, so that a clock of ours that is wrong makes no wait too long or too short.
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    at = _date(value)
    if at is None:
        return None
    now = _date(headers.get("date"))
    return max(0.0, at - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _date(value: str | None) -> float | None:
    if value is None:
        return None
    # Here and not above: it brings a mail reader with it, and few answers need it.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None
