"""What a model's name tells of its thinking: how to ask for it, and what it wants back."""

from __future__ import annotations

import re
from typing import Any

from vaala.models.base import ModelFailure

_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_OTHER_TASKS = re.compile(r"-(?:image|tts|live|audio|embedding)(?:-|$)")
"""Models of a generation that draw or speak: what they take differs from one to the next."""

_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
"""Tokens, as Google's own OpenAI-compatible endpoint translates an effort
(ai.google.dev/gemini-api/docs/openai, "Thinking")."""
_BUDGET_MIN_OF_PRO = 128
"""Gemini 2.5 Pro cannot stop thinking (ai.google.dev/gemini-api/docs/thinking)."""

_LEVELS = {"none": "low", "minimal": "low", "low": "low", "medium": "medium", "high": "high"}
"""``minimal`` is not known to every model of generation 3, so the least is ``low``
(ai.google.dev/gemini-api/docs/generate-content/whats-new-gemini-3.7: low, medium, high)."""
_HIGHEST = ("xhigh", "max")
"""Efforts of other providers that are above the highest here."""


def generation(model: str) -> tuple[int, int] | None:
    """Return major and minor version of a Gemini model, None for any other model.

    A name without a number, such as ``gemini-flash-latest``, is the newest: generation 3 or later.
    """
    name = model.rpartition("/")[2]
    if not name.startswith("gemini"):
        return None
    found = _VERSION.match(name)
    return (3, 0) if found is None else (int(found[1]), int(found[2] or 0))


def thinking_config(model: str, effort: str | None) -> dict[str, Any] | None:
    """Return the ``thinkingConfig`` for an effort; None: the model takes none.

    Without an effort the model decides, and only its thoughts are asked for. Level and budget
    exclude each other (ai.google.dev/gemini-api/docs/gemini-3: 400 for both). Raises
    `ModelFailure` of kind ``invalid_request`` for an effort that is not known.
    """
    version = generation(model)
    if version is None or version < (2, 5) or _OTHER_TASKS.search(model):
        return None
    if effort is None:
        return {"includeThoughts": True}
    known = "high" if effort in _HIGHEST else effort
    if known not in _LEVELS:
        ways = ", ".join((*_LEVELS, *_HIGHEST))
        raise ModelFailure("invalid_request", f"the effort {effort!r} is not known: use {ways}")
    if version >= (3, 0):
        return {"includeThoughts": True, "thinkingLevel": _level(known, model, version)}
    budget = _BUDGETS[known]
    if "pro" in model:
        budget = max(budget, _BUDGET_MIN_OF_PRO)
    if budget == 0:
        # Thoughts cannot be asked for then: 400.
        return {"thinkingBudget": 0}
    return {"includeThoughts": True, "thinkingBudget": budget}


def wants_signatures(model: str) -> bool:
    """Tell whether a function call in the history must have a signature.

    From generation 3 on the first of each answer must, or the request is refused
    (ai.google.dev/gemini-api/docs/thought-signatures).
    """
    version = generation(model)
    return version is not None and version >= (3, 0)


def _level(effort: str, model: str, version: tuple[int, int]) -> str:
    # Gemini 3 Pro, unlike all that came after it, has low and high alone.
    if effort == "medium" and version == (3, 0) and "gemini-3-pro" in model:
        return "high"
    return _LEVELS[effort]
