"""From a provider's error, in whatever shape, to one `ModelFailure`: the only place that does it.

The kinds, what they are made of, and whether a retry can help:

    auth              401, 403, a key that is not valid                     no
    billing           402, no credit, quota used up                         no
    rate_limit        429, throttling                                       yes
    overloaded        5xx, 529, "loading model", a failed generation        yes
    context_overflow  the request or its answer does not fit the window     no (shrink it first)
    refused           content filter, moderation                            no
    invalid_request   every other 4xx                                       no
    network           408, 407 (no), and all that has no answer             yes
    incomplete        an error inside a stream that names no cause          yes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from vaala.models.base import ModelFailure
from vaala.models.error_body import ErrorBody, read_error_body
from vaala.models.keys.late import LateKey
from vaala.models.limits import ERROR_TEXT_CHARS_MAX, RETRY_AFTER_S_MAX
from vaala.models.retry_after import retry_after_s
from vaala.models.secret import Secret, scrub
from vaala_protocol.settings import ErrorKind

_OVERFLOW = (
    r"prompt is too long|exceeds? (?:the )?context (?:limit|window)|context[_ ]length[_ ]exceeded"
    r"|exceeds? the (?:model'?s )?(?:context|maximum context)"
    r"|request_too_large|input is too long for requested model"
    r"|exceeds the context window|input token count.*exceeds the maximum"
    r"|maximum prompt length is \d+|reduce the length of the messages"
    r"|maximum context length (?:is|of) \d+|exceeds the limit of \d+"
    r"|exceeds the available context size|exceed_context_size_error"
    r"|greater than the context length|n_keep.*n_ctx|context the overflows"
    r"|context size has been exceeded|context shift is disabled|context window exceeds limit"
    r"|exceeded model token limit|too large for model with \d+ maximum context length"
    r"|prompt too long; exceeded|input length exceeds the context length"
    r"|max_tokens must be at least 1, got -\d+|current length is \d+ while limit is"
    r"|inputs. tokens \+ .max_new_tokens. must be|model_context_window_exceeded"
)
"""What providers say when the window is full; the wordings are their own. These patterns are texts
and compiled at the first error: most runs meet none."""

_NOT_OVERFLOW = (
    r"rate.?limit|too many requests|too many tokens, please wait|throttl|tokens per minute"
)
_BILLING = (
    r"insufficient_quota|billing|credit balance|insufficient (?:balance|credits?|funds)"
    r"|exceeded your current quota|payment required|out of credits|api usage limits?"
)
_AUTH = (
    r"authentication_error|invalid_api_key|api key not valid|permission_(?:error|denied)"
    r"|invalid api key|incorrect api key|unauthenticated"
)
_REFUSED = r"content_filter|responsibleaipolicy|content_policy|moderation|flagged"
_RATE_LIMIT = r"rate.?limit|resource_exhausted|throttl|too many requests"
_OVERLOADED = (
    r"overloaded|server_error|api_error|unavailable|internal|timeout_error|loading model"
    r"|insufficient_system_resource"
)
_BAD_REQUEST = r"invalid_request|bad.?request|invalid_argument"
_FAILED_GENERATION = "tool_use_failed"
"""Groq: the model wrote a call that its own server refuses; another try is another draw."""


class Origin(Struct, frozen=True):
    """Who answered, for the text of failures, and what must not appear in it."""

    name: str
    secrets: tuple[Secret, ...] = ()
    url_from: str = ""
    key_from: str = ""
    """Where URL and key come from, when that is known: what a person would have to change."""
    late_key: LateKey | None = None
    """A key that is asked for when it is first needed."""

    @property
    def hidden(self) -> tuple[Secret, ...]:
        """All that is known now and must not appear."""
        return (*self.secrets, *(self.late_key.known if self.late_key is not None else ()))

    def clean(self, text: str) -> str:
        """Return ``text`` as one line, bounded, without secrets or control characters."""
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        line = scrub(line, self.hidden)
        if len(line) > ERROR_TEXT_CHARS_MAX:
            line = f"{line[:ERROR_TEXT_CHARS_MAX]}..."
        return line


def failure_of_status(
    origin: Origin, status: int, headers: Mapping[str, str], body: bytes
) -> ModelFailure:
    """Map an answer whose status is not a success."""
    return _failure_of(origin, status, read_error_body(body), retry_after_s(headers))


def failure_in_stream(origin: Origin, body: bytes) -> ModelFailure:
    """Map an error that came inside an answer of status 200."""
    error = read_error_body(body)
    return _failure_of(origin, error.status, error, None)


def failure_of_kind(
    origin: Origin, kind: ErrorKind, text: str, *, retryable: bool = False
) -> ModelFailure:
    """Make a failure that we found ourselves; ``text`` may quote what came from outside."""
    return ModelFailure(kind, f"{origin.name}: {origin.clean(text)}", retryable=retryable)


def _failure_of(
    origin: Origin, status: int | None, error: ErrorBody, wait_s: float | None
) -> ModelFailure:
    kind, retryable = _judge(status, error)
    if wait_s is None:
        wait_s = error.retry_delay_s
    return ModelFailure(
        kind,
        _message(origin, kind, error, status),
        retryable=retryable,
        retry_after_s=None if wait_s is None else min(wait_s, RETRY_AFTER_S_MAX),
        status=status,
    )


def _judge(status: int | None, error: ErrorBody) -> tuple[ErrorKind, bool]:
    """Return the kind and whether a retry can help. What the text says goes before the status."""
    words = error.words
    if error.code == _FAILED_GENERATION:
        return "incomplete", True
    if status == 402 or (status != 401 and _is_billing(words)):
        return "billing", False
    if _is_overflow(status, words):
        return "context_overflow", False
    if status == 413 and _says(_NOT_OVERFLOW, words):
        # Groq: larger than a minute's tokens. The same request can never pass.
        return "rate_limit", False
    if status in (400, 403, None) and _says(_REFUSED, words):
        return "refused", False
    if status in (401, 403) or (status in (400, None) and _says(_AUTH, words)):
        return "auth", False
    return _judge_by_status(status, words)


def _judge_by_status(status: int | None, words: str) -> tuple[ErrorKind, bool]:
    if status is None:
        if _says(_RATE_LIMIT, words):
            return "rate_limit", True
        if _says(_OVERLOADED, words):
            return "overloaded", True
        if _says(_BAD_REQUEST, words):
            return "invalid_request", False
        return "incomplete", True
    match status:
        case 429:
            return "rate_limit", True
        case 407:
            return "network", False
        case 408 | 425:
            return "network", True
        case 409 | 498:
            return "overloaded", True
        case _ if status >= 500:
            return "overloaded", True
        case _:
            return "invalid_request", False


def _is_billing(words: str) -> bool:
    # Google speaks of plan and billing when only this minute's quota is used up.
    return _says(_BILLING, words) and "RESOURCE_EXHAUSTED" not in words


def _is_overflow(status: int | None, words: str) -> bool:
    if status in (401, 402, 403, 404, 429) or _says(_NOT_OVERFLOW, words):
        return False
    return status == 413 or _says(_OVERFLOW, words)


def _says(pattern: str, words: str) -> bool:
    return re.search(pattern, words, re.IGNORECASE | re.DOTALL) is not None


_LEADS: Mapping[ErrorKind, str] = {
    "auth": "the key was refused",
    "billing": "no credit left",
    "rate_limit": "rate limit",
    "overloaded": "the server failed or is overloaded",
    "context_overflow": "the request does not fit the model's context window",
    "refused": "refused by the provider's content filter",
    "invalid_request": "the request was refused",
    "network": "no usable answer",
    "incomplete": "the answer broke off",
}


def _message(origin: Origin, kind: ErrorKind, error: ErrorBody, status: int | None) -> str:
    lead = _LEADS[kind]
    if status == 407:
        lead = "the proxy wants other credentials"
    elif status is not None and 300 <= status < 400:
        lead = "the server redirects, so the base URL is not right"
    number = "" if status is None else f" (HTTP {status})"
    details = _details(origin, error.texts)
    text = f"{origin.name}: {lead}{number}" + (f": {details}" if details else "")
    if kind == "auth" and origin.key_from:
        verb = "comes from" if origin.hidden else "would come from"
        text += f"; the key {verb} {origin.key_from}"
    return text


def _details(origin: Origin, texts: Iterable[str]) -> str:
    return "; ".join(text for text in (origin.clean(text) for text in texts) if text)
