"""`Answer`: what is sent back for a request over plain HTTP."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from vaala.server.transport.refusal import code_of_status, error_body
from vaala_protocol.base import encode
from vaala_protocol.errors import Refused

SECURITY_HEADERS: Final = (
    ("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""In every answer: nothing of ours may be framed, guessed at, or told to other sites."""

STATUS_OF_CODE: Final = {
    "bad_request": 400,
    "model_unreachable": 400,
    "not_found": 404,
    "not_pending": 409,
    "busy": 409,
    "overloaded": 503,
    "not_durable": 507,
    "stopping": 503,
    "timed_out": 504,
}


_JSON: Final = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))


class Answer(Struct, frozen=True):
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    """Left out of the answer to a HEAD."""


def json_answer(value: object, status: int = 200) -> Answer:
    """Return a value as JSON that no cache keeps."""
    return Answer(status, _JSON, encode(value) + b"\n")


def error_answer(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Return the answer for what goes wrong before a view is asked, or beside it."""
    return Answer(status, (*_JSON, *headers), error_body(code_of_status(status), message))


def refused_answer(error: Refused) -> Answer:
    """Return the answer that tells a refusal."""
    status = STATUS_OF_CODE.get(error.code, 500)
    return Answer(status, _JSON, error_body(error.code, str(error)))
