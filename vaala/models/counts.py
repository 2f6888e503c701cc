"""The token counts that servers report, whatever stands in their place."""

from __future__ import annotations

from math import isfinite
from typing import Any

from vaala_protocol.settings import Usage

_COUNT_MAX = 2**53 - 1
"""The largest whole number that every reader of JSON holds exactly (RFC 8259, section 6)."""


def count_of(value: Any) -> int | None:
    """Return ``value`` as a count, None when it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Only a fraction can be infinite, and a large whole number fits none.
    if isinstance(value, float) and not isfinite(value):
        return None
    return min(max(0, int(value)), _COUNT_MAX)


def count(fields: dict[str, Any], name: str) -> int:
    """Return a count; one that is missing or no number is 0."""
    return count_of(fields.get(name)) or 0


def details(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object that splits a count, empty where there is none."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def disjoint(
    prompt: int, answer: int, *, cached: int, written: int, reasoning: int, total: int
) -> Usage:
    """Return counts of OpenAI's formats, where one contains the other, in disjoint classes.

    ``prompt`` contains what was read from and written to the cache. ``answer`` contains the
    reasoning, but not at every server: where it cannot, or the ``total`` shows that it does not,
    the reasoning is left apart.
    """
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    apart = reasoning > answer or (reasoning > 0 and total == prompt + answer + reasoning)
    return Usage(
        input=prompt - cached - written,
        cache_read=cached,
        cache_write=written,
        output=answer if apart else answer - reasoning,
        reasoning=reasoning,
    )
