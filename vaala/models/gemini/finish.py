"""What the finish reasons mean (ai.google.dev/api/generate-content, FinishReason)."""

from __future__ import annotations

from vaala.models.base import Finish, FinishReason
from vaala_protocol.settings import ErrorKind

_REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MALFORMED_FUNCTION_CALL": "malformed_call",
    "UNEXPECTED_TOOL_CALL": "malformed_call",
    "TOO_MANY_TOOL_CALLS": "malformed_call",
}

_FAILURES: dict[str, ErrorKind] = {
    "MISSING_THOUGHT_SIGNATURE": "invalid_request",
    "MALFORMED_RESPONSE": "incomplete",
}
_FAILURES_WHEN_EMPTY: dict[str, ErrorKind] = {"OTHER": "incomplete"}
"""Beside an answer it is only a reason that has no name of its own."""

UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"


def failure_kind(raw: str, *, empty: bool) -> ErrorKind | None:
    """Return the kind of failure that a finish reason stands for, None when it is no failure.

    ``empty`` tells that the answer has neither text nor calls.
    """
    return _FAILURES.get(raw) or (_FAILURES_WHEN_EMPTY.get(raw) if empty else None)


def read_finish(raw: str, *, calls: int) -> Finish:
    """Return the terminal event. An answer that calls functions ends with a plain STOP."""
    reason = _REASONS.get(raw, "unknown")
    return Finish("tool_calls" if reason == "stop" and calls else reason, raw)
