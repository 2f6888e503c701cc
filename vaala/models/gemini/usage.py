"""The token counts of a response in disjoint classes."""

from __future__ import annotations

from math import isfinite
from typing import Any

from vaala_protocol.settings import Usage

_COUNT_MAX = 2**53 - 1
"""The largest whole number that every reader of JSON holds exactly (RFC 8259, section 6)."""


def read_usage(fields: dict[str, Any]) -> Usage | None:
    """Read a ``usageMetadata`` object; None: it counts nothing. A missing count is 0.

    ``promptTokenCount`` contains what came from the cache, but not the results of the server's own
    tools. ``candidatesTokenCount`` does not contain the thoughts (ai.google.dev/api/
    generate-content, UsageMetadata: the total is the sum of the four); where the total says that it
    does, they are taken out.
    """
    prompt = _count(fields, "promptTokenCount")
    answer = _count(fields, "candidatesTokenCount")
    thoughts = _count(fields, "thoughtsTokenCount")
    tools = _count(fields, "toolUsePromptTokenCount")
    cached = min(_count(fields, "cachedContentTokenCount"), prompt)
    if not (prompt or answer or thoughts or tools):
        return None
    within = thoughts > 0 and _count(fields, "totalTokenCount") == prompt + answer + tools
    return Usage(
        input=prompt - cached + tools,
        cache_read=cached,
        output=max(0, answer - thoughts) if within else answer,
        reasoning=thoughts,
    )


def _count(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, int):
        return min(max(0, value), _COUNT_MAX)
    if not isinstance(value, float) or not isfinite(value):
        return 0
    return min(max(0, int(value)), _COUNT_MAX)
