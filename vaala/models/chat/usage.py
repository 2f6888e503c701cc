"""The token counts of chat completions in disjoint classes."""

from __future__ import annotations

from typing import Any

from vaala.models.counts import count, details, disjoint
from vaala_protocol.settings import Usage


def read_usage(fields: dict[str, Any]) -> Usage:
    """Read a ``usage`` object; a count that is missing or no number is 0.

    ``prompt_tokens`` contains what came from the cache. ``completion_tokens`` contains the
    reasoning tokens at OpenAI and DeepSeek, but not at xAI: the total tells.
    """
    of_prompt = details(fields, "prompt_tokens_details")
    return disjoint(
        count(fields, "prompt_tokens"),
        count(fields, "completion_tokens"),
        cached=count(of_prompt, "cached_tokens") or count(fields, "prompt_cache_hit_tokens"),
        written=count(of_prompt, "cache_write_tokens"),
        reasoning=count(details(fields, "completion_tokens_details"), "reasoning_tokens"),
        total=count(fields, "total_tokens"),
    )
