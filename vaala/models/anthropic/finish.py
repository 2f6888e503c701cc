"""What the stop reasons of the Messages API mean
(platform.claude.com/docs/en/build-with-claude/handling-stop-reasons)."""

from __future__ import annotations

from typing import Any

from vaala.models.base import Finish, FinishReason

WINDOW_FULL = "model_context_window_exceeded"
"""The answer filled the window: it is cut, and no further request fits either."""

_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
}


def read_finish(raw: str, details: Any, *, calls: int, said: bool) -> Finish:
    """Return the terminal event for a stop reason.

    What the answer holds decides where the two contradict each other, as gateways make them.
    ``details`` are the ``stop_details``: they name the policy that a refusal rests on.
    """
    reason: FinishReason = _REASONS.get(raw, "unknown") if raw else "stop"
    if reason == "stop" and calls:
        reason = "tool_calls"
    elif reason == "tool_calls" and not calls:
        reason = "stop" if said else "malformed_call"
    category = details.get("category") if isinstance(details, dict) else None
    return Finish(reason, f"{raw}: {category}" if isinstance(category, str) else raw)
