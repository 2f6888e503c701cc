"""Replies of `chat_server` in the format of the Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vaala.testing.provider import Piece, Reply
from vaala.testing.provider_chat import FakeCall, document
from vaala_protocol.base import encode


@dataclass(frozen=True, slots=True)
class FakeItem:
    """An item of an answer: as it ends, and the events that it comes in before that."""

    item: dict[str, Any]
    deltas: tuple[dict[str, Any], ...] = ()


def event(kind: str, /, **fields: Any) -> bytes:
    """One event, named as OpenAI names it."""
    return f"event: {kind}\ndata: ".encode() + encode({"type": kind, **fields}) + b"\n\n"


def usage(
    given: int = 10, made: int = 5, *, cached: int = 0, written: int = 0, reasoning: int = 0
) -> dict[str, Any]:
    """The usage of a response."""
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": given + made,
    }


def response(status: str, items: Iterable[FakeItem] = (), **fields: Any) -> dict[str, Any]:
    """A whole response."""
    return {
        "id": "resp_fake",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": [one.item for one in items],
        "usage": usage(),
        **fields,
    }


def message(*pieces: str, id: str = "msg_fake", phase: str | None = None) -> FakeItem:
    """A message that says the pieces, each in a delta of its own."""
    part = {"type": "output_text", "text": "".join(pieces), "annotations": list[Any]()}
    item = {"id": id, "type": "message", "role": "assistant", "status": "completed"}
    more = {"content": [part]} | ({} if phase is None else {"phase": phase})
    deltas = ({"type": "response.output_text.delta", "delta": piece} for piece in pieces)
    return FakeItem(item | more, tuple(one | {"content_index": 0} for one in deltas))


def reasoning(
    *summary: str, encrypted: str = "gAAAAAfake", id: str = "rs_fake", content: str = ""
) -> FakeItem:
    """A piece of reasoning; each text of its summary comes in a delta of its own."""
    parts = [{"type": "summary_text", "text": text} for text in summary]
    item: dict[str, Any] = {"id": id, "type": "reasoning", "summary": parts}
    if encrypted:
        item["encrypted_content"] = encrypted
    deltas = [
        {"type": "response.reasoning_summary_text.delta", "summary_index": index, "delta": text}
        for index, text in enumerate(summary)
    ]
    if content:
        item["content"] = [{"type": "reasoning_text", "text": content}]
        deltas.append({"type": "response.reasoning_text.delta", "delta": content})
    return FakeItem(item, tuple(deltas))


def function_call(one: FakeCall, *, piece_chars: int = 16) -> FakeItem:
    """A call whose arguments come in pieces."""
    item = {
        "id": f"fc_{one.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": one.id,
        "name": one.name,
        "arguments": one.arguments,
    }
    kind = "response.function_call_arguments.delta"
    pieces = range(0, len(one.arguments), piece_chars)
    deltas = ({"type": kind, "delta": one.arguments[at : at + piece_chars]} for at in pieces)
    return FakeItem(item, tuple(deltas))


def answer(*items: FakeItem, status: str = "completed", **fields: Any) -> Reply:
    """An answer of these items, each in all the events that OpenAI sends for it."""
    body = [event("response.created", response=response("in_progress"))]
    for index, one in enumerate(items):
        begun = one.item | ({"arguments": ""} if "arguments" in one.item else {})
        body.append(event("response.output_item.added", output_index=index, item=begun))
        for delta in one.deltas:
            fields_ = {key: value for key, value in delta.items() if key != "type"}
            place = {"output_index": index, "item_id": one.item["id"]}
            body.append(event(delta["type"], **place, **fields_))
        body.append(event("response.output_item.done", output_index=index, item=one.item))
    kind = "response.completed" if status == "completed" else f"response.{status}"
    body.append(event(kind, response=response(status, items, **fields)))
    return Reply(tuple(body))


def text(*pieces: str, **fields: Any) -> Reply:
    """An answer that says the pieces."""
    return answer(message(*pieces), **fields)


def tool_calls(*calls: FakeCall, say: str = "", **fields: Any) -> Reply:
    """An answer that asks for the calls."""
    said = (message(say),) if say else ()
    return answer(*said, *map(function_call, calls), **fields)


def failed(code: str, message: str) -> Reply:
    """An answer that fails after it has begun."""
    body = response("failed", error={"code": code, "message": message}, usage=None)
    return stream(
        event("response.created", response=response("in_progress")),
        event("response.failed", response=body),
    )


def stream(*body: Piece) -> Reply:
    """A stream of exactly these pieces."""
    return Reply(tuple(body))


def error(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> Reply:
    """An error in OpenAI's form."""
    fields = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return document(encode({"error": fields}), status=status, headers=headers)
