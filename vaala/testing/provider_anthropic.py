"""Replies of `chat_server` in the format of the Messages API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vaala.testing.provider import Reply
from vaala.testing.provider_chat import FakeCall, document
from vaala_protocol.base import encode

PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def event(kind: str, **fields: Any) -> bytes:
    """One event, named as the API names them."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), encode({"type": kind, **fields}))


def message_start(id: str = "msg_fake", /, **usage: int) -> bytes:
    """The first event; ``usage`` are counts such as ``input_tokens``."""
    counts = {"input_tokens": 10, "output_tokens": 1} | usage
    message = {"id": id, "type": "message", "role": "assistant", "content": [], "usage": counts}
    return event("message_start", message=message)


def message_delta(stop: str, output_tokens: int = 5, **delta: Any) -> bytes:
    """The event with the stop reason and the last counts."""
    fields = {"stop_reason": stop, "stop_sequence": None, **delta}
    return event("message_delta", delta=fields, usage={"output_tokens": output_tokens})


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    """A whole block: its start, its deltas and its stop."""
    events = [event("content_block_start", index=index, content_block=start)]
    events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    return b"".join((*events, event("content_block_stop", index=index)))


def text_block(index: int, *pieces: str) -> bytes:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def thinking_block(index: int, *pieces: str, signature: str = "sig") -> bytes:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    signed = {"type": "signature_delta", "signature": signature}
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signed)


def call_block(index: int, call: FakeCall, *, piece_chars: int = 16) -> bytes:
    """A tool call, its arguments cut into pieces."""
    cuts = range(0, len(call.arguments), piece_chars)
    deltas = [
        {"type": "input_json_delta", "partial_json": call.arguments[at : at + piece_chars]}
        for at in cuts
    ]
    start = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    return block(index, start, *deltas)


def answer(*blocks: bytes, stop: str = "end_turn", **usage: int) -> Reply:
    """A complete answer of these blocks."""
    head, tail = message_start(**usage), message_delta(stop)
    return Reply((head, *blocks, tail, event("message_stop")))


def text(*pieces: str, stop: str = "end_turn", thinking: Sequence[str] = ()) -> Reply:
    """An answer that says the pieces, after thoughts if there are any."""
    thoughts = [thinking_block(0, *thinking)] if thinking else []
    return answer(*thoughts, text_block(len(thoughts), *pieces), stop=stop)


def tool_calls(*calls: FakeCall, thinking: Sequence[str] = ()) -> Reply:
    """An answer that asks for the calls, after thoughts if there are any."""
    blocks = [thinking_block(0, *thinking)] if thinking else []
    for call in calls:
        blocks.append(call_block(len(blocks), call))
    return answer(*blocks, stop="tool_use")


def failed(
    status: int, type: str, message: str, *, headers: Sequence[tuple[str, str]] = ()
) -> Reply:
    """An error with a status, in the API's form."""
    body = {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_fake"}
    return document(encode(body), status=status, headers=headers)


def error_event(type: str, message: str) -> bytes:
    """An error inside a stream."""
    return event("error", error={"type": type, "message": message})
