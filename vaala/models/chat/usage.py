"""The token counts of chat completions in disjoint classes."""

from __future__ import annotations

from math import isfinite
from typing import Any

from vaala_protocol.settings import Usage

_COUNT_MAX = 2**53 - 1
"""The largest whole number that every reader of JSON holds exactly (RFC 8259, section 6)."""


def read_usage(fields: dict[str, Any]) -> Usage:
    """Read a ``usage`` object; a count that is missing or no number is 0.

    ``prompt_tokens`` contains what came from the cache. ``completion_tokens`` contains the
    reasoning tokens at OpenAI and DeepSeek, but not at xAI: the total tells.
    """
    prompt = _count(fields, "prompt_tokens")
    completion = _count(fields, "completion_tokens")
    of_prompt = _object(fields, "prompt_tokens_details")
    reasoning = _count(_object(fields, "completion_tokens_details"), "reasoning_tokens")
    cached = _count(of_prompt, "cached_tokens") or _count(fields, "prompt_cache_hit_tokens")
    written = _count(of_prompt, "cache_write_tokens")
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    apart = reasoning > completion or (
        reasoning > 0 and _count(fields, "total_tokens") == prompt + completion + reasoning
    )
    return Usage(
        input=prompt - cached - written,
        cache_read=cached,
        cache_write=written,
        output=completion if apart else completion - reasoning,
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
