"""Our messages as input items of the Responses API.

A request body is put together from bytes: the history is encoded already, so that a long one
costs a copy of memory. Whatever the messages hold, what comes out is a legal request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from vaala.models.base import (
    AssistantSaid,
    CallPart,
    CallResult,
    Message,
    ModelFailure,
    ModelRequest,
    ToolSpec,
    UserSaid,
)
from vaala.models.output import NAME, instructions_with, is_object, is_strict
from vaala.models.responses.limits import OUTPUT_TOKENS_MIN, TOOLS_MAX
from vaala.models.responses.replay import message_item, replayed
from vaala.models.schema import legal_parameters
from vaala.models.tool_names import wire_name
from vaala.models.wire import arguments_of, call_id, json_bytes, text_of
from vaala.text import is_blank
from vaala_protocol.base import decode, encode
from vaala_protocol.items import Private

RESERVED_OPTIONS = frozenset(
    {
        "model", "input", "instructions", "tools", "stream", "store", "background",
        "previous_response_id", "conversation",
    }
)  # fmt: skip
"""Fields of the request that are ours; an option with such a name is refused. Those that would
make the server keep an answer, or begin from one that it keeps, are among them."""

ENCRYPTED = "reasoning.encrypted_content"

_ITEM_ID = re.compile(rb'\{"type":"(?:reasoning|message)","id":"((?:[^"\\]|\\.)*)"')
"""Of an encoded item; in a text, where the quotes are escaped, it is not found."""


class Author(Struct, frozen=True):
    """Whose private data may be sent: what another model, API or provider gave is left out."""

    provider: str
    api: str
    model: str

    def wrote(self, private: Private) -> bool:
        return (private.provider, private.api, private.model) == (
            self.provider,
            self.api,
            self.model,
        )


class Asked(Struct, frozen=True):
    """What is asked for on our own account: servers and models that know it not refuse it."""

    encrypted: bool = True
    summary: bool = True
    replay: bool = True
    """Reasoning of earlier answers goes along."""
    output: bool = True
    """The schema of the answer is a field; else it stands in the instructions."""


def encode_messages(messages: Iterable[Message], author: Author | None = None) -> bytes:
    """Return the messages as JSON objects joined by commas.

    Private data goes along where ``author`` wrote it.
    """
    items = (item for message in messages for item in _items(message, author))
    return b",".join(json_bytes(item) for item in items)


def without_replay(encoded: bytes) -> bytes:
    """Return encoded messages without the reasoning and the ids that belong to an answer."""
    if b'"id":' not in encoded and b'"type":"reasoning"' not in encoded:
        return encoded
    items: list[dict[str, Any]] = decode(b"[" + encoded + b"]")
    return b",".join(encode(_plain(item)) for item in items if item.get("type") != "reasoning")


def with_distinct_ids(pieces: Sequence[bytes]) -> list[bytes]:
    """Return encoded messages in which an answer that stands there twice has its reasoning and its
    ids once: "Duplicate item found with id".

    A damaged log may have a step twice. Costs a search where it has none.
    """
    ids = [found for piece in pieces for found in _ITEM_ID.findall(piece)]
    if len(set(ids)) == len(ids):
        return list(pieces)
    known: set[str] = set()
    distinct: list[bytes] = []
    for piece in pieces:
        items: list[dict[str, Any]] = decode(b"[" + piece + b"]")
        distinct.append(b",".join(map(encode, _with_new_ids(items, known))))
    return distinct


def request_body(request: ModelRequest, model: str, author: Author, asked: Asked) -> bytes:
    """Return the body of a streaming request.

    Raises `ModelFailure` of kind ``invalid_request`` for an option that is reserved.
    """
    # One join over all pieces: the history, which can be megabytes, is copied once.
    parts = [b'{"model":', json_bytes(model), b',"input":[', *_input(request, author, asked)]
    parts.append(b'],"stream":true,"store":false')
    instructions, format_ = _output(request, asked)
    if not is_blank(instructions):
        parts += [b',"instructions":', json_bytes(instructions)]
    if tools := _tools(request.tools):
        parts += [b',"tools":', json_bytes(tools)]
    fields = _fields(request, asked)
    if format_ is not None:
        chosen = fields.get("text")
        fields["text"] = (chosen if isinstance(chosen, dict) else {}) | {"format": format_}
    for name, value in fields.items():
        parts += [b",", json_bytes(name), b":", json_bytes(value)]
    parts.append(b"}")
    return b"".join(parts)


def _output(request: ModelRequest, asked: Asked) -> tuple[str, dict[str, Any] | None]:
    """Return the instructions, and ``text.format`` where a document is asked for by its schema
    (platform.openai.com/docs/api-reference/responses/create)."""
    output = request.output
    if output is None:
        return request.instructions, None
    told = instructions_with(request.instructions, output)
    if not asked.output or not is_object(output.schema):
        return told, None
    strict = is_strict(output.schema)
    schema = output.schema if strict else legal_parameters(output.schema)
    format_ = {"type": "json_schema", "name": NAME, "strict": strict, "schema": schema}
    return told if output.again else request.instructions, format_


def _input(request: ModelRequest, author: Author, asked: Asked) -> list[bytes]:
    pieces = [request.history, encode_messages(request.messages, author)]
    if not asked.replay:
        pieces = [without_replay(piece) for piece in pieces]
    pieces = with_distinct_ids(pieces)
    joined: list[bytes] = []
    for piece in pieces:
        if piece:
            joined += [b",", piece] if joined else [piece]
    return joined


def _fields(request: ModelRequest, asked: Asked) -> dict[str, Any]:
    reserved = sorted(RESERVED_OPTIONS & request.options.keys())
    if reserved:
        raise ModelFailure(
            "invalid_request", f"model options cannot set {', '.join(reserved)}: remove them"
        )
    fields = dict(request.options)
    if request.output_tokens_max is not None:
        fields.setdefault("max_output_tokens", max(OUTPUT_TOKENS_MIN, request.output_tokens_max))
    reasoning: dict[str, Any] = {}
    if request.effort is not None:
        reasoning["effort"] = request.effort
    if asked.summary:
        reasoning["summary"] = "auto"
    chosen = fields.get("reasoning", {})
    if isinstance(chosen, dict) and (reasoning or chosen):
        fields["reasoning"] = reasoning | chosen
    included = fields.get("include", [])
    if asked.encrypted and isinstance(included, list) and ENCRYPTED not in included:
        fields["include"] = [*included, ENCRYPTED]
    return fields


def _items(message: Message, author: Author | None) -> list[dict[str, Any]]:
    match message:
        case UserSaid():
            return [{"role": "user", "content": text_of(message.content) or "(nothing)"}]
        case AssistantSaid():
            return _answer(message, author)
        case CallResult():
            text = text_of(message.content) or "(no output)"
            output = {"type": "function_call_output", "call_id": call_id(message.id)}
            return [{**output, "output": text}]


def _answer(said: AssistantSaid, author: Author | None) -> list[dict[str, Any]]:
    for private in (said.private, *(call.private for call in said.calls)):
        if author is None or private is None or not author.wrote(private):
            continue
        parts = replayed(said, private.data)
        if parts:
            return [_call(said.calls[part["index"]]) if "index" in part else part for part in parts]
    items = [] if is_blank(said.text) else [message_item(said.text)]
    items += [_call(call) for call in said.calls]
    return items or [message_item("(nothing)")]


def _call(call: CallPart) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call_id(call.id),
        "name": wire_name(call.name),
        "arguments": arguments_of(call.arguments),
    }


def _with_new_ids(items: Iterable[dict[str, Any]], known: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the items. Reasoning and what follows it keep their ids together or lose them."""
    waiting: list[dict[str, Any]] = []
    for item in items:
        waiting.append(item)
        if item.get("type") == "reasoning":
            continue
        ids = [one["id"] for one in waiting if "id" in one]
        if known.isdisjoint(ids) and len(set(ids)) == len(ids):
            yield from waiting
        else:
            yield _plain(item)
        known.update(ids)
        waiting = []


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of an encoded history without its id."""
    if item.get("type") != "message":
        return item
    return message_item(item["content"][0]["text"], phase=item.get("phase"))


def _tools(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools as far as a request may have them; of two with one name the first counts."""
    named: dict[str, dict[str, Any]] = {}
    for tool in tools:
        name = wire_name(tool.name)
        if name not in named and len(named) < TOOLS_MAX:
            named[name] = _tool(name, tool)
    return list(named.values())


def _tool(name: str, tool: ToolSpec) -> dict[str, Any]:
    # Not strict: that would demand of each schema that all properties are required.
    function: dict[str, Any] = {"type": "function", "name": name, "strict": False}
    if not is_blank(tool.description):
        function["description"] = tool.description
    return function | {"parameters": legal_parameters(tool.parameters)}
