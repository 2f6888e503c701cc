"""The token counts of a response in disjoint classes."""

from __future__ import annotations

from typing import Any

from vaala.models.counts import count, details, disjoint
from vaala_protocol.settings import Usage


def read_usage(fields: dict[str, Any]) -> Usage:
    """Read a ``usage`` object; a count that is missing or no number is 0.

    ``input_tokens`` contains what was read from and written to the cache, and ``output_tokens``
    the reasoning (developers.openai.com/api/reference/resources/responses). Where the total shows
    that a server counts its reasoning apart, it is left apart.
    """
    of_input = details(fields, "input_tokens_details")
    return disjoint(
        count(fields, "input_tokens"),
        count(fields, "output_tokens"),
        cached=count(of_input, "cached_tokens"),
        written=count(of_input, "cache_write_tokens"),
        reasoning=count(details(fields, "output_tokens_details"), "reasoning_tokens"),
        total=count(fields, "total_tokens"),
    )
