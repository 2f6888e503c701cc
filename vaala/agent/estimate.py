"""How many tokens a request has, from its bytes; and how many its model takes.

A first guess is put right by what the provider reports of each call, for each model by itself.
"""

from __future__ import annotations

import re

from msgspec import Struct

from vaala.models.base import Model
from vaala_protocol.settings import Usage

_TOKENS_PER_BYTE = 0.28
"""Between code (3.3 bytes a token) and English prose (4.4), as JSON."""
_BELIEVED = (0.04, 8.0)
"""What a provider may report for each byte. Less comes from servers that count only what was not
cached or cut the request; then the guess is better."""
_CERTAIN = 0.125
"""So many tokens has a byte of any text at least: what is too much by this is surely too much."""
_REPORT_HOLDS = 0.8
"""How far the next request, of other text, may be below what the last one's report would give."""

_STATED = (
    r"(?:maximum|available) (?:context|prompt|input)? ?(?:length|size|limit)[^0-9]{0,20}(\d[\d,]*)",
    r"(\d[\d,]*) maximum context length",
    r"tokens allowed \((\d[\d,]*)\)",
    r"n_ctx[^0-9]{0,20}(\d[\d,]*)",
    r"(?:>|<=) ?(\d[\d,]*)",
    r"(?:length|size|limit|window|maximum)[^0-9]{0,3} (?:is|of|=|:)? ?(\d[\d,]*)",
)
"""How servers tell the size of the window: OpenAI, vLLM and OpenRouter ("maximum context length is
N"), Gemini ("tokens allowed (N)"), llama.cpp ("n_ctx"), Anthropic ("M tokens > N maximum")."""


class Measure(Struct):
    """What was learned of one model."""

    tokens_per_byte: float = _TOKENS_PER_BYTE
    known: bool = False
    """Reported by the provider, and no guess."""
    window: int | None = None
    """The largest request that it may take, as a refusal told."""
    settled: int = 0
    """The bytes of a request when its history was last made shorter, or could not be."""


class Estimates:
    """Kept by a session while it is open, for each of its models."""

    def __init__(self) -> None:
        self._measures: dict[str, Measure] = {}

    def _of(self, model: Model) -> Measure:
        return self._measures.setdefault(model.name, Measure())

    def tokens(self, model: Model, size_bytes: int) -> int:
        """Return about how many tokens ``size_bytes`` of a request are."""
        return round(size_bytes * self._of(model).tokens_per_byte)

    def size(self, model: Model, tokens: float) -> int:
        """Return about how many bytes of a request so many tokens are."""
        return int(tokens / self._of(model).tokens_per_byte)

    def surely(self, model: Model, size_bytes: int) -> int:
        """Return how many tokens they are at least: as reported, or what any text has."""
        measure = self._of(model)
        known = measure.tokens_per_byte * _REPORT_HOLDS
        return round(size_bytes * (known if measure.known else _CERTAIN))

    def grown(self, model: Model, size_bytes: int) -> int:
        """Return how many bytes the request has grown since `settle`."""
        return size_bytes - self._of(model).settled

    def settle(self, model: Model, size_bytes: int) -> None:
        """Note the size of a request that is as short as it shall be for now."""
        self._of(model).settled = size_bytes

    def window(self, model: Model) -> int | None:
        """Return the window in tokens: what is configured, or less when a refusal showed that."""
        learned = self._of(model).window
        known = [size for size in (model.window_tokens, learned) if size is not None]
        return min(known, default=None)

    def reported(self, model: Model, size_bytes: int, usage: Usage) -> None:
        """Learn from a call that was answered: what it read, cached or not, is the request."""
        read = usage.input + usage.cache_read + usage.cache_write
        measure = self._of(model)
        if size_bytes > 0 and _BELIEVED[0] <= (ratio := read / size_bytes) <= _BELIEVED[1]:
            measure.tokens_per_byte, measure.known = ratio, True
        if measure.window is not None and read > measure.window:
            measure.window = None

    def refused(self, model: Model, size_bytes: int, message: str) -> None:
        """Learn from a call that was too long; where no window is told, it is less than that."""
        measure, guessed = self._of(model), self.tokens(model, size_bytes)
        stated = stated_window(message)
        if stated is None:
            measure.window = min(guessed, measure.window or guessed)
            return
        measure.window = stated
        if guessed <= stated and size_bytes > 0:
            measure.tokens_per_byte = min(_BELIEVED[1], stated / size_bytes)


def stated_window(message: str) -> int | None:
    """Return the window that a provider's refusal tells, in tokens; None: it tells none."""
    for pattern in _STATED:
        if (found := re.search(pattern, message, re.IGNORECASE)) is not None:
            tokens = int(found[1].replace(",", ""))
            if tokens >= _WINDOW_TOKENS_MIN:
                return tokens
    return None


_WINDOW_TOKENS_MIN = 256
"""A smaller number in a message is no window."""
