"""Replies of `chat_server` in the format of chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vaala.testing.provider import Piece, Reply
from vaala_protocol.base import encode

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class FakeCall:
    """A tool call to be streamed; see `call`."""

    name: str
    arguments: str
    id: str


def call(name: str, /, *, call_id: str = "", **arguments: Any) -> FakeCall:
    """A tool call with arguments as keywords; ``FakeCall`` itself takes any text for them."""
    return FakeCall(name, encode(arguments).decode(), call_id or f"call_{name}")


def data(value: object) -> bytes:
    """One event with the JSON of ``value``."""
    return b"data: " + encode(value) + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None) -> bytes:
    """One chat-completions chunk with a delta or a finish reason."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return data({"id": "chatcmpl-fake", "object": "chat.completion.chunk", "choices": [choice]})


def usage_chunk(prompt: int = 10, completion: int = 5, *, cached: int = 0) -> bytes:
    """The last chunk, with usage and without choices."""
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return data({"id": "chatcmpl-fake", "choices": [], "usage": usage})


def text(
    *pieces: str,
    finish: str = "stop",
    reasoning: Sequence[str] = (),
    usage: bytes | None = None,
) -> Reply:
    """An answer that says the pieces, each in a chunk of its own."""
    deltas = [chunk({"reasoning_content": piece}) for piece in reasoning]
    deltas += [chunk({"content": piece}) for piece in pieces]
    return _answer(deltas, finish, usage)


def tool_calls(
    *calls: FakeCall,
    say: str = "",
    finish: str = "tool_calls",
    usage: bytes | None = None,
    piece_chars: int = 16,
) -> Reply:
    """An answer that asks for the calls, their arguments cut into pieces."""
    deltas = [chunk({"content": say})] if say else []
    for index, one in enumerate(calls):
        head = {"index": index, "id": one.id, "type": "function"}
        function = {"name": one.name, "arguments": ""}
        deltas.append(chunk({"tool_calls": [head | {"function": function}]}))
        for at in range(0, len(one.arguments), piece_chars):
            part = {"arguments": one.arguments[at : at + piece_chars]}
            deltas.append(chunk({"tool_calls": [{"index": index, "function": part}]}))
    return _answer(deltas, finish, usage)


def stream(*body: Piece) -> Reply:
    """A stream of exactly these pieces."""
    return Reply(tuple(body))


def error(
    status: int,
    message: str,
    *,
    type: str = "",
    code: str | int | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> Reply:
    """An error in OpenAI's form."""
    body = encode({"error": {"message": message, "type": type, "param": None, "code": code}})
    return document(body, status=status, headers=headers)


def document(
    body: bytes,
    *,
    status: int = 200,
    content_type: str = "application/json",
    headers: Sequence[tuple[str, str]] = (),
) -> Reply:
    """An answer that is no stream."""
    return Reply((body,), status, (("content-type", content_type), *headers), len(body))


def _answer(deltas: list[bytes], finish: str, usage: bytes | None) -> Reply:
    return Reply((*deltas, chunk(finish=finish), usage or usage_chunk(), DONE))
