"""The token counts of the Messages API in disjoint classes."""

from __future__ import annotations

from typing import Any

from vaala.models.counts import count, count_of
from vaala_protocol.settings import Usage

_COUNTS = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
)


class UsageReader:
    """Puts the usage of an answer together.

    ``message_start`` has all counts, ``message_delta`` those that changed; each is a total and
    replaces the one before (case B8-3). The input is already apart from what the cache gave and
    took; thoughts are part of the output
    (platform.claude.com/docs/en/build-with-claude/streaming, prompt-caching).
    """

    def __init__(self) -> None:
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._thinking = 0

    def read(self, fields: Any) -> Usage | None:
        """Take a ``usage`` object, or anything in its place; None: it says nothing."""
        if not isinstance(fields, dict):
            return None
        self._take(fields)
        iterations = fields.get("iterations")
        if isinstance(iterations, list) and iterations:
            # The totals are of the last pass alone; earlier ones, that made a summary, were paid
            # for as well (platform.claude.com/docs/en/build-with-claude/compaction, "usage").
            self._sum([one for one in iterations if isinstance(one, dict)])
        output = self._counts["output_tokens"]
        thinking = min(self._thinking, output)
        return Usage(
            input=self._counts["input_tokens"],
            cache_read=self._counts["cache_read_input_tokens"],
            cache_write=self._counts["cache_creation_input_tokens"],
            output=output - thinking,
            reasoning=thinking,
        )

    def _take(self, fields: dict[str, Any]) -> None:
        for name in _COUNTS:
            told = count_of(fields.get(name))
            if told is not None:
                self._counts[name] = told
        details = fields.get("output_tokens_details")
        thinking = count_of(details.get("thinking_tokens")) if isinstance(details, dict) else None
        self._thinking = self._thinking if thinking is None else thinking

    def _sum(self, iterations: list[dict[str, Any]]) -> None:
        for name in _COUNTS:
            total = sum(count(one, name) for one in iterations)
            self._counts[name] = max(self._counts[name], total)
