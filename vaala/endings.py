"""How turns end: the state, the reason, and one line for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from vaala.agent.answer import Answer
from vaala.agent.definition import Budgets
from vaala_protocol.items import AssistantMessage
from vaala_protocol.settings import StopReason, Usage
from vaala_protocol.state import TurnState

By: TypeAlias = Literal["user", "shutdown", "crash", "budget"]
"""Who or what interrupts a turn."""


class Ending(Struct, frozen=True):
    """How a turn ends; ``message`` is one line for people."""

    state: TurnState
    stop_reason: StopReason
    message: str = ""


def interrupted_ending(by: By, budgets: Budgets) -> Ending:
    """Return how an interrupted turn ends."""
    match by:
        case "budget":
            seconds = budgets.seconds_max
            text = f"Stopped after {seconds:g} s, the limit of a turn."
        case "shutdown":
            text = "Interrupted: the runtime was stopped."
        case _:
            text = "Interrupted."
    return Ending("interrupted", "interrupted", text)


def over_budget(budgets: Budgets, steps: int, used: Iterable[Usage]) -> Ending | None:
    """Return how a turn ends that has made so many steps and used so much; None: it goes on."""
    if steps > budgets.steps_max:
        text = f"Stopped after {budgets.steps_max} steps, the limit of a turn."
        return Ending("completed", "max_steps", text)
    tokens = sum(usage.total for usage in used)
    if budgets.tokens_max is not None and tokens >= budgets.tokens_max:
        text = f"Stopped after {tokens} tokens; the limit of a turn is {budgets.tokens_max}."
        return Ending("completed", "budget", text)
    return None


def ending_of(answer: Answer) -> Ending:
    """Return how a turn ends whose last answer asks for no call."""
    finish = answer.finish
    assert finish is not None
    raw = f" ({finish.raw})" if finish.raw else ""
    empty = not any(isinstance(item, AssistantMessage) for item in answer.items)
    match finish.reason:
        case "stop":
            return Ending("completed", "end_turn", "The model said nothing." if empty else "")
        case "length":
            return Ending("completed", "max_tokens", "The answer was cut at the token limit.")
        case "refusal":
            return Ending("completed", "refusal", f"The model refused to answer{raw}.")
        case "content_filter":
            return Ending("completed", "refusal", f"The provider filtered the answer{raw}.")
        case "tool_calls":
            return Ending("failed", "failed", "The model announced tool calls and made none.")
        case "malformed_call":
            return Ending("failed", "failed", f"The model made a malformed tool call{raw}.")
        case "pause":
            return Ending("failed", "failed", f"The provider paused the answer{raw}; ask again.")
        case "unknown":
            return Ending("failed", "failed", f"The model stopped for an unknown reason{raw}.")
