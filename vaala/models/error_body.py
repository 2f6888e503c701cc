"""What an error body says, read from every shape that providers have been seen to send.

{"error": {"message", "type", "code", "param", "status", "metadata": {"raw"}, "details": []}}
{"error": "text"}   {"message", "type", "code"}   {"detail": "text" | [...]}   [{"error": ...}]
a web page, plain text, nothing
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from vaala_protocol.base import Malformed, decode

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


class ErrorBody(Struct, frozen=True):
    texts: tuple[str, ...]
    """For people; the upstream's own words, where a gateway quotes them, come last."""
    code: str = ""
    type: str = ""
    param: str = ""
    status: int | None = None
    """An HTTP status that the body names; it counts where there is no other."""
    retry_delay_s: float | None = None

    @property
    def words(self) -> str:
        """All that it says, for matching."""
        return " ".join((*self.texts, self.code, self.type))


def read_error_body(body: bytes) -> ErrorBody:
    """Read a body of any form; never fails."""
    try:
        data = decode(body)
    except Malformed:
        return ErrorBody(_plain(body.decode("utf-8", "replace")))
    if isinstance(data, list):
        data = data[0] if data else {}
    if not isinstance(data, dict):
        return ErrorBody(_plain(str(data)))
    error: Any = data.get("error")
    if error is None and isinstance(data.get("response"), dict):
        error = data["response"].get("error")
    if isinstance(error, str):
        return ErrorBody((error,), code=_text(data.get("code")), status=_status(data.get("code")))
    return _read_fields(error if isinstance(error, dict) else data)


def _read_fields(error: dict[str, Any]) -> ErrorBody:
    message = error.get("message", error.get("detail", ""))
    texts = [message if isinstance(message, str) else str(message)]
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):
        texts.append(_text(metadata["raw"]))
    code = error.get("code")
    # An inner code (Azure: "ResponsibleAIPolicyViolation") tells more than the outer one.
    inner = error.get("innererror")
    inner_code = _text(inner.get("code")) if isinstance(inner, dict) else ""
    named = [_text(error.get("type")), _text(error.get("status")), inner_code]
    status = _status(error.get("status_code"))
    return ErrorBody(
        tuple(text for text in texts if text),
        code=_text(code),
        type=" ".join(name for name in named if name),
        param=_text(error.get("param")),
        status=status if status is not None else _status(code),
        retry_delay_s=_retry_delay(error.get("details")),
    )


def _retry_delay(details: Any) -> float | None:
    """Return Google's RetryInfo, ``{"retryDelay": "34.4s"}``, in seconds."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        found = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
        if found is not None:
            return float(found[1])
    return None


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 300 <= value <= 599 else None


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _plain(text: str) -> tuple[str, ...]:
    if "<" in text:
        title = _TITLE.search(text)
        text = title[1] if title is not None else _TAG.sub(" ", text)
    text = " ".join(text.split())
    return (text,) if text else ()
