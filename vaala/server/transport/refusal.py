"""`Refusal`: an answer that ends a connection before anything was done."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from vaala_protocol.base import encode


class Refusal(Exception):
    """Raised for a request that is not going to be answered; the connection ends with it."""

    def __init__(self, status: int, text: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        """``text`` is one line that says what was wrong and what would be right."""
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text
        self.headers = tuple(headers)

    def render(self) -> bytes:
        """Return the whole answer, after which the connection is closed."""
        body = error_body(code_of_status(self.status), self.text)
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "X-Content-Type-Options: nosniff",
            *(f"{name}: {value}" for name, value in self.headers),
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


def code_of_status(status: int) -> str:
    """Return what a refusal without a code of its own is called, as in ``unauthorized``."""
    return HTTPStatus(status).name.lower()


def error_body(code: str, message: str) -> bytes:
    """Return the body of every answer that tells an error, the same for programs everywhere."""
    return encode({"error": {"code": code, "message": message}}) + b"\n"
