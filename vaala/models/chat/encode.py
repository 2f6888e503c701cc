"""Our messages as the JSON of chat completions.

A request body is put together from bytes: the history is encoded already, so that a long one
costs a copy of memory. Whatever the messages hold, what comes out is a legal request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

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
from vaala.models.schema import legal_parameters
from vaala.models.tool_names import wire_name
from vaala.models.wire import arguments_of, call_id, json_bytes, text_of

RESERVED_OPTIONS = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
"""Fields of the request that are ours; an option with such a name is refused."""


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Return the messages as JSON objects joined by commas."""
    return b",".join(json_bytes(_message(message)) for message in messages)


class Dialect(Struct, frozen=True):
    """What a server knows of this format."""

    output_limit_field: str = "max_tokens"
    usage_asked: bool = True
    calls_beside_output: bool = False
    """A schema of the answer leaves the model free to call tools. Most servers that constrain what
    is said allow no call then (github.com/vllm-project/vllm/issues/39929,
    github.com/ollama/ollama/issues/8095): they get the schema when the document alone is wanted.
    """
    output_level: int = 0
    """How an answer that matches a schema is asked for: 0 by the schema, 1 as some JSON object,
    2 in the instructions alone."""


def request_body(request: ModelRequest, model: str, dialect: Dialect) -> bytes:
    """Return the body of a streaming request.

    Raises `ModelFailure` of kind ``invalid_request`` for an option that is reserved.
    """
    # One join over all pieces: the history, which can be megabytes, is copied once.
    parts = [b'{"model":', json_bytes(model), b',"messages":[']
    output = _output(request, dialect)
    parts += _all_messages(request, output.instructions)
    parts.append(b'],"stream":true')
    if dialect.usage_asked:
        parts.append(b',"stream_options":{"include_usage":true}')
    # An empty list of tools is refused by some servers: the key is left out.
    if request.tools:
        parts += [b',"tools":', json_bytes(_tools(request.tools))]
    for name, value in (_fields(request, dialect) | output.fields).items():
        parts += [b",", json_bytes(name), b":", json_bytes(value)]
    parts.append(b"}")
    return b"".join(parts)


class _Output(Struct, frozen=True):
    instructions: str
    fields: dict[str, Any] = {}


def _output(request: ModelRequest, dialect: Dialect) -> _Output:
    """Return how a document is asked for: the field, the instructions, or both."""
    output = request.output
    if output is None:
        return _Output(request.instructions)
    told = _Output(instructions_with(request.instructions, output))
    beside = dialect.calls_beside_output or not request.tools
    if not (beside or output.again) or dialect.output_level > 1 or not is_object(output.schema):
        return told
    fields: dict[str, Any] = {} if beside else {"tool_choice": "none"}
    if dialect.output_level == 1:
        # The word JSON has to stand in a message, or it is refused: it does.
        return replace(told, fields=fields | {"response_format": {"type": "json_object"}})
    strict = is_strict(output.schema)
    schema = output.schema if strict else legal_parameters(output.schema)
    described = {"name": NAME, "schema": schema, "strict": strict}
    fields |= {"response_format": {"type": "json_schema", "json_schema": described}}
    return replace(told, fields=fields) if output.again else _Output(request.instructions, fields)


def _all_messages(request: ModelRequest, instructions: str) -> list[bytes]:
    pieces = [request.history, encode_messages(request.messages)]
    if instructions.strip():
        pieces.insert(0, json_bytes({"role": "system", "content": instructions}))
    joined: list[bytes] = []
    for piece in pieces:
        if piece:
            joined += [b",", piece] if joined else [piece]
    return joined


def _fields(request: ModelRequest, dialect: Dialect) -> dict[str, Any]:
    reserved = sorted(RESERVED_OPTIONS & request.options.keys())
    if reserved:
        raise ModelFailure(
            "invalid_request", f"model options cannot set {', '.join(reserved)}: remove them"
        )
    fields: dict[str, Any] = {}
    if request.effort is not None:
        fields["reasoning_effort"] = request.effort
    if request.output_tokens_max is not None:
        fields[dialect.output_limit_field] = request.output_tokens_max
    return fields | request.options


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserSaid():
            return {"role": "user", "content": text_of(message.content)}
        case AssistantSaid():
            return _assistant(message)
        case CallResult():
            text = text_of(message.content)
            return {
                "role": "tool",
                "tool_call_id": call_id(message.id),
                # Some servers refuse an empty result.
                "content": text or "(no output)",
            }


def _assistant(message: AssistantSaid) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "assistant"}
    has_text = bool(message.text.strip())
    if has_text or not message.calls:
        fields["content"] = message.text if has_text else "(nothing)"
    else:
        fields["content"] = None
    if message.calls:
        fields["tool_calls"] = [_call(call) for call in message.calls]
    return fields


def _call(call: CallPart) -> dict[str, Any]:
    # A model may have called what no tool is called; servers refuse such a name in the history.
    function = {"name": wire_name(call.name), "arguments": arguments_of(call.arguments)}
    return {"id": call_id(call.id), "type": "function", "function": function}


def _tools(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools as servers take them; of two with one name the first counts."""
    named: dict[str, dict[str, Any]] = {}
    for tool in tools:
        name = wire_name(tool.name)
        if name not in named:
            named[name] = _tool(name, tool)
    return list(named.values())


def _tool(name: str, tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name, "parameters": legal_parameters(tool.parameters)}
    if tool.description.strip():
        function["description"] = tool.description
    return {"type": "function", "function": function}
