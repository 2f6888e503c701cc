"""What the finish reasons of many servers mean."""

from __future__ import annotations

from vaala.models.base import Finish, FinishReason
from vaala_protocol.settings import ErrorKind

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "sensitive": "content_filter",
    "refusal": "refusal",
    "malformed_function_call": "malformed_call",
    "unexpected_tool_call": "malformed_call",
    "pause_turn": "pause",
}

_FAILURES: dict[str, ErrorKind] = {
    "error": "incomplete",
    "network_error": "network",
    "abort": "incomplete",
    "insufficient_system_resource": "overloaded",
    "model_context_window_exceeded": "context_overflow",
}


def failure_kind(raw: str) -> ErrorKind | None:
    """Return the kind of failure that a finish reason stands for, None when it is no failure."""
    return _FAILURES.get(raw.lower())


def read_finish(raw: str, *, calls: int, said: bool, refused: bool) -> Finish:
    """Return the terminal event for what the server called its end.

    Servers name it wrongly: "stop" after tool calls, "tool_calls" without any. What the answer
    holds decides then, but a cut ("length") or a filter stays one, whatever the answer holds.
    ``said`` tells that there was text, ``refused`` that it was the text of a refusal.
    """
    reason: FinishReason = _REASONS.get(raw.lower(), "unknown") if raw else "stop"
    if reason == "stop" and refused:
        reason = "refusal"
    elif reason == "stop" and calls:
        reason = "tool_calls"
    elif reason == "tool_calls" and not calls:
        reason = "stop" if said else "malformed_call"
    return Finish(reason, raw)
