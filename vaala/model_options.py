"""Effort and options of a model call: what is in force, and where it was set.

From the highest: the message, the conversation, the agent, the model, its provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from vaala.models.base import Model, ModelFailure
from vaala.models.options import AS_IT_IS, OUTPUT_TOKENS, Defaults, plain
from vaala_protocol.settings import Settings

if TYPE_CHECKING:
    from vaala.turn import Turn

_EFFORT = "effort"
_SAID_AS = {
    _EFFORT: (
        *(_EFFORT, "reasoning", "reasoning_effort", "output_config"),
        *("thinking", "budget_tokens", "thinking_level", "thinking_budget"),
    ),
    OUTPUT_TOKENS: (OUTPUT_TOKENS, "max_tokens", "max_completion_tokens"),
}
"""How providers call what has another name here."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Asked(Struct, frozen=True):
    """What a model is asked with."""

    effort: str | None
    output_tokens_max: int | None
    options: dict[str, Any]


def asked_of(settings: Settings, model: Model) -> Asked:
    """Return what is in force for a model, given the settings of a turn."""
    own = Defaults(settings.effort, settings.options).over(model.defaults)
    options = {name: value for name, value in own.options.items() if value is not None}
    tokens = options.pop(OUTPUT_TOKENS, None)
    return Asked(None if own.effort == AS_IT_IS else own.effort, tokens, options)


def explained(failure: ModelFailure, turn: Turn, model: Model) -> ModelFailure:
    """Return a refusal with the place of each option that it names; another failure as it is."""
    if failure.kind != "invalid_request":
        return failure
    words = {plain(word) for word in _WORD.findall(failure.message)}
    places = [
        f"{name} is set {place}"
        for name, place in _places(turn, model)
        if any(plain(one) in words for one in _SAID_AS.get(name, (name,)))
    ]
    if not places:
        return failure
    text = f"{failure.message.rstrip('.')} ({'; '.join(places)})"
    return ModelFailure(failure.kind, text, status=failure.status)


def _places(turn: Turn, model: Model) -> Iterator[tuple[str, str]]:
    """Yield each option that is sent, the effort among them, and where it was set."""
    agent = turn.agent
    levels = (
        (turn.asked, "for this message"),
        (turn.session.state.head.settings, "for this conversation"),
        (agent.settings, f"by the agent {agent.name}"),
    )
    asked = asked_of(turn.info.settings, model)
    tokens = () if asked.output_tokens_max is None else (OUTPUT_TOKENS,)
    for name in (*asked.options, *tokens):
        yield name, next((p for one, p in levels if name in one.options), _below(model))
    if asked.effort is not None:
        yield _EFFORT, next((p for one, p in levels if one.effort is not None), _below(model))


def _below(model: Model) -> str:
    return f"for {model.name} in providers.yaml"
