"""The token counts of a response in disjoint classes."""

from __future__ import annotations

from math import isfinite
from typing import Any

from vaala_protocol.settings import Usage

_COUNT_MAX = 2**53 - 1
"""The largest whole number that every reader of JSON holds exactly (RFC 8259, section 6)."""


def read_usage(fields: dict[str, Any]) -> Usage:
    """Read a ``usage`` object; a count that is missing or no number is 0.

    ``input_tokens`` contains what was read from and written to the cache, and ``output_tokens``
    the reasoning (developers.openai.com/api/reference/resources/responses). Where the total shows
    that a server counts its reasoning apart, it is left apart.
    """
    given = _count(fields, "input_tokens")
    made = _count(fields, "output_tokens")
    of_input = _object(fields, "input_tokens_details")
    reasoning = _count(_object(fields, "output_tokens_details"), "reasoning_tokens")
    cached = min(_count(of_input, "cached_tokens"), given)
    written = min(_count(of_input, "cache_write_tokens"), given - cached)
    apart = reasoning > made or (
        reasoning > 0 and _count(fields, "total_tokens") == given + made + reasoning
    )
    return Usage(
        input=given - cached - written,
        cache_read=cached,
        cache_write=written,
        output=made if apart else made - reasoning,
        reasoning=reasoning,
    )


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _count(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int | float) or not isfinite(value):
        return 0
    return min(max(0, int(value)), _COUNT_MAX)
