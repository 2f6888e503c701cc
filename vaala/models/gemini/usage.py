"""The token counts of a response in disjoint classes."""

from __future__ import annotations

from typing import Any

from vaala.models.counts import count
from vaala_protocol.settings import Usage


def read_usage(fields: dict[str, Any]) -> Usage | None:
    """Read a ``usageMetadata`` object; None: it counts nothing. A missing count is 0.

    ``promptTokenCount`` contains what came from the cache, but not the results of the server's own
    tools. ``candidatesTokenCount`` does not contain the thoughts (ai.google.dev/api/
    generate-content, UsageMetadata: the total is the sum of the four); where the total says that it
    does, they are taken out.
    """
    prompt = count(fields, "promptTokenCount")
    answer = count(fields, "candidatesTokenCount")
    thoughts = count(fields, "thoughtsTokenCount")
    tools = count(fields, "toolUsePromptTokenCount")
    cached = min(count(fields, "cachedContentTokenCount"), prompt)
    if not (prompt or answer or thoughts or tools):
        return None
    within = thoughts > 0 and count(fields, "totalTokenCount") == prompt + answer + tools
    return Usage(
        input=prompt - cached + tools,
        cache_read=cached,
        output=max(0, answer - thoughts) if within else answer,
        reasoning=thoughts,
    )
