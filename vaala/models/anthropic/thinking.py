"""What models can do and want, by their names. Pure.

Models of Anthropic are told apart by the version in their name. A name without one, or with a
newer one than is known, is taken for the newest: what an older model could not do is refused with
a clear text, and what a newer one no longer takes would be as well.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from vaala.models.anthropic.limits import ANSWER_TOKENS_MIN, BUDGET_TOKENS_MIN
from vaala.models.base import ModelFailure

_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_NEWEST = (99, 0)

_THINKS = (3, 7)
_INTERLEAVES = (4, 0)
_ADAPTS = (4, 6)
"""From here on a model decides itself how long it thinks; from 4.7 on a budget is refused."""
_HAS_XHIGH = (4, 7)
_THINKS_BY_DEFAULT = (5, 0)
"""Its thoughts have no text unless that is asked for
(platform.claude.com/docs/en/build-with-claude/thinking, adaptive-thinking, effort)."""

_INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"
"""Thoughts between tool calls, for models that do not adapt."""
_BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""Lets a request say what is done with thoughts whose conversation has changed before them
(platform.claude.com/docs/en/build-with-claude/preserved-thinking)."""

_BUDGETS = {"low": 4_096, "medium": 10_000, "high": 24_000, "xhigh": 32_000, "max": 48_000}
"""Tokens; beyond 32,000 there is little to gain
(platform.claude.com/docs/en/build-with-claude/extended-thinking)."""
_NO_THINKING = ("none", "off")
_SAME = {"minimal": "low"}

_OUTPUT_TOKENS_OTHER = 8_192
"""For models that are not Anthropic's."""
_OUTPUT_TOKENS = (((3, 0), 4_096), ((3, 5), 8_192), ((4, 1), 32_000))
"""What models up to a version can say at most (models.dev catalogue 1.0.398)."""
_OUTPUT_TOKENS_NEWER = 64_000
"""What every newer one can; some can twice that, but seldom should."""


class Thinking(Struct, frozen=True):
    """What a request says of thinking."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    betas: tuple[str, ...] = ()
    manual: bool = False
    """Thinking has a budget: an answer that is in the middle of its tool calls must then begin
    with a thought."""


def version(model: str) -> tuple[int, int] | None:
    """Return the version of a model of Anthropic, None for the model of anybody else."""
    if "claude" not in model:
        return None
    found = _CLAUDE.search(model)
    return _NEWEST if found is None else (int(found[1]), int(found[2] or 0))


def output_tokens(model: str, window_tokens: int | None) -> int:
    """Return the ``max_tokens`` of a request that names none; the API wants some number."""
    known = version(model)
    if known is None:
        tokens = _OUTPUT_TOKENS_OTHER
    else:
        tokens = next((n for upto, n in _OUTPUT_TOKENS if known <= upto), _OUTPUT_TOKENS_NEWER)
    return tokens if window_tokens is None else max(1, min(tokens, window_tokens // 2))


def thinking_of(
    model: str, effort: str | None, tokens_max: int, *, drop_mismatched: bool = False
) -> Thinking:
    """Return how a model is asked to think with an effort; None: as it does by itself.

    ``drop_mismatched`` has the server leave out thoughts before which the conversation changed.
    Raises `ModelFailure` of kind ``invalid_request`` for an effort that stands for no budget.
    """
    known = version(model)
    effort = _SAME.get(effort, effort) if effort else None
    if known is not None and known >= _ADAPTS:
        return _adaptive(known, effort, drop_mismatched=drop_mismatched)
    if effort is None or effort in _NO_THINKING or (known is not None and known < _THINKS):
        return Thinking()
    budget = _BUDGETS.get(effort)
    if budget is None:
        words = ", ".join((*_NO_THINKING, *_BUDGETS))
        text = f"the effort {effort!r} means nothing to {model}; it is one of {words}"
        raise ModelFailure("invalid_request", text)
    budget = min(budget, tokens_max - ANSWER_TOKENS_MIN)
    if budget < BUDGET_TOKENS_MIN:
        return Thinking()
    fields = {"thinking": {"type": "enabled", "budget_tokens": budget}}
    betas = (_INTERLEAVED_BETA,) if known is not None and known >= _INTERLEAVES else ()
    return Thinking(fields, betas, manual=True)


def _adaptive(known: tuple[int, int], effort: str | None, *, drop_mismatched: bool) -> Thinking:
    if effort in _NO_THINKING:
        # The newest cannot be told not to think at all.
        effort = "low" if known >= _THINKS_BY_DEFAULT else None
    if effort is None and known < _THINKS_BY_DEFAULT:
        return Thinking()
    if effort == "xhigh" and known < _HAS_XHIGH:
        effort = "high"
    thinking: dict[str, Any] = {"type": "adaptive", "display": "summarized"}
    if drop_mismatched:
        thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    fields: dict[str, Any] = {"thinking": thinking}
    if effort is not None:
        fields["output_config"] = {"effort": effort}
    return Thinking(fields, (_BINDING_BETA,) if drop_mismatched else ())
