"""Replies of `chat_server` in the format of generateContent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vaala.testing.provider import Piece, Reply
from vaala_protocol.base import encode

Part = dict[str, Any]
Response = dict[str, Any]


def say(text: str, *, signature: str = "", thought: bool = False) -> Part:
    """A text, or a thought."""
    return {"text": text} | ({"thought": True} if thought else {}) | _signed(signature)


def call(name: str, /, *, call_id: str = "", signature: str = "", **arguments: Any) -> Part:
    """A function call with arguments as keywords; newer models give an id, older ones do not."""
    function: dict[str, Any] = {"name": name, "args": arguments}
    return {"functionCall": ({"id": call_id} if call_id else {}) | function} | _signed(signature)


def response(
    *parts: Part, finish: str = "", usage: Mapping[str, int] | None = None, message: str = ""
) -> Response:
    """One response of a stream."""
    candidate: dict[str, Any] = {"index": 0}
    if parts:
        candidate["content"] = {"parts": list(parts), "role": "model"}
    if finish:
        candidate["finishReason"] = finish
    if message:
        candidate["finishMessage"] = message
    found: Response = {"candidates": [candidate], "modelVersion": "gemini-fake"}
    return found if usage is None else found | {"usageMetadata": dict(usage)}


def counts(
    prompt: int = 10, answer: int = 5, *, thoughts: int = 0, cached: int = 0
) -> dict[str, int]:
    """The ``usageMetadata`` of a response."""
    found = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": answer,
        "totalTokenCount": prompt + answer + thoughts,
    }
    found |= {"thoughtsTokenCount": thoughts} if thoughts else {}
    return found | ({"cachedContentTokenCount": cached} if cached else {})


def data(value: object) -> bytes:
    """One event with the JSON of ``value``; Google ends lines with CRLF."""
    return b"data: " + encode(value) + b"\r\n\r\n"


def text(*pieces: str, finish: str = "STOP", thoughts: Sequence[str] = ()) -> Reply:
    """An answer that says the pieces, each in a response of its own."""
    parts = [say(thought, thought=True) for thought in thoughts]
    return answer(*parts, *map(say, pieces), finish=finish)


def answer(
    *parts: Part, finish: str = "STOP", usage: Mapping[str, int] | None = None, message: str = ""
) -> Reply:
    """A stream with each part in a response of its own; the last one has finish and usage."""
    counted = counts() if usage is None else usage
    last = response(*parts[-1:], finish=finish, usage=counted, message=message)
    return stream(*(data(response(part)) for part in parts[:-1]), data(last))


def array(*responses: Response) -> Reply:
    """The same without ``alt=sse``: an array that grows, one response in each piece."""
    pieces = [b",\r\n"] * (2 * len(responses) - 1)
    pieces[::2] = [encode(one) for one in responses]
    return Reply((b"[", *pieces, b"]"), headers=(("content-type", "application/json"),))


def blocked(reason: str, message: str = "") -> Reply:
    """A prompt that is blocked: no candidate."""
    told = {"blockReasonMessage": message} if message else {}
    return stream(data({"promptFeedback": {"blockReason": reason} | told}))


def stream(*body: Piece) -> Reply:
    """A stream of exactly these pieces."""
    return Reply(tuple(body))


def error(status: int, name: str, message: str, *, retry_delay: str = "") -> Reply:
    """An error in Google's form; ``retry_delay``, such as "34.4s", becomes a RetryInfo."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry_delay}
    fields = {"code": status, "message": message, "status": name}
    details = {"details": [info]} if retry_delay else {}
    body = encode({"error": fields | details})
    return Reply((body,), status, (("content-type", "application/json"),), len(body))


def _signed(signature: str) -> dict[str, str]:
    return {"thoughtSignature": signature} if signature else {}
