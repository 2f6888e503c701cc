"""How a response ended: its status, and what its failures mean."""

from __future__ import annotations

from typing import Any

from vaala.models.base import Finish, FinishReason, ModelFailure
from vaala.models.failures import Origin, failure_in_stream, failure_of_kind
from vaala.models.wire import json_bytes
from vaala_protocol.settings import ErrorKind

TERMINAL = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The terminal events, and the status that each stands for where the response has none."""

FAILED = frozenset(("failed", "cancelled"))
RUNNING = frozenset(("queued", "in_progress"))

_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
"""``incomplete_details.reason``."""

_CODES: dict[str, ErrorKind] = {
    "invalid_prompt": "invalid_request",
    "data_residency_mismatch": "invalid_request",
    "bio_policy": "refused",
    "misalignment_policy_violation": "refused",
    "image_content_policy_violation": "refused",
}
"""``error.code`` of a failed response where the code alone tells. All others that name an image
are about the request (developers.openai.com/api/reference/resources/responses, ResponseError)."""


def read_finish(status: str, details: Any, *, calls: int, refused: bool) -> Finish:
    """Return the terminal event of a response that did not fail.

    ``details`` is its ``incomplete_details``. Nothing but ``incomplete`` tells of a cut: what the
    answer holds decides the rest.
    """
    if status == "incomplete":
        reason = details.get("reason") if isinstance(details, dict) else None
        raw = reason if isinstance(reason, str) and reason else status
        return Finish(_INCOMPLETE.get(raw, "unknown"), raw)
    if refused:
        return Finish("refusal", status)
    return Finish("tool_calls" if calls else "stop", status)


def failure_of_response(origin: Origin, response: dict[str, Any], status: str) -> ModelFailure:
    """Map a response that failed or was cancelled."""
    error = response.get("error")
    if status == "cancelled" and not error:
        text = "the server cancelled the answer"
        return failure_of_kind(origin, "incomplete", text, retryable=True)
    failure = failure_in_stream(origin, json_bytes({"error": error or {"message": "(no reason)"}}))
    code = error.get("code") if isinstance(error, dict) else None
    kind = _kind(code) if isinstance(code, str) else None
    if kind is None or failure.kind != "incomplete":
        return failure
    message = error.get("message") if isinstance(error, dict) else None
    return failure_of_kind(origin, kind, f"the answer failed ({code}): {message or '(no reason)'}")


def _kind(code: str) -> ErrorKind | None:
    known = _CODES.get(code)
    return "invalid_request" if known is None and "image" in code else known
