"""A request of the Messages API, put together from bytes: the history is encoded already."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from vaala.models.anthropic.encode import (
    encode_messages,
    joined,
    lacks_thought,
    with_cache_marks,
    without_open_thoughts,
    without_thoughts,
)
from vaala.models.anthropic.output_schema import answer_schema
from vaala.models.anthropic.replay import Block, Owner
from vaala.models.anthropic.schema import input_schema
from vaala.models.anthropic.thinking import Thinking, output_tokens, thinking_of, version
from vaala.models.base import ModelFailure, ModelRequest, ToolSpec
from vaala.models.output import instructions_with
from vaala.models.tool_names import wire_name
from vaala.models.wire import json_bytes
from vaala.text import is_blank

RESERVED_OPTIONS = frozenset({"model", "messages", "system", "tools", "stream"})
"""Fields of the request that are ours; an option with such a name is refused."""

_HAS_FORMATS = (4, 5)
"""From here on a model can be held to a schema."""
_CACHED: Block = {"cache_control": {"type": "ephemeral"}}


class Target(Struct, frozen=True):
    """The model that a request is for, and what was learned of its server."""

    owner: Owner
    model: str
    window_tokens: int | None = None
    drop_mismatched: bool = False
    """The server is told to leave out thoughts before which the conversation changed."""
    keep_thoughts: bool = True
    ask_output: bool = True
    """An answer that matches a schema is asked for by a field."""


class Body(Struct, frozen=True):
    data: bytes
    betas: tuple[str, ...]
    asks_output: bool = False
    """It has a field for the schema of the answer."""


def request_body(request: ModelRequest, target: Target) -> Body:
    """Return the body of a streaming request, and the beta features that it uses.

    Raises `ModelFailure` of kind ``invalid_request`` for an option that is reserved, or an effort
    that the model does not know.
    """
    reserved = sorted(RESERVED_OPTIONS & request.options.keys())
    if reserved:
        raise ModelFailure(
            "invalid_request", f"model options cannot set {', '.join(reserved)}: remove them"
        )
    messages = joined(request.history, encode_messages(request.messages, target.owner))
    if not target.keep_thoughts:
        messages = without_thoughts(messages)
    instructions, format_ = _output(request, target)
    request = replace(request, instructions=instructions)
    fields, thinking = _fields(request, target, messages)
    if format_ is not None:
        chosen = fields.get("output_config")
        fields["output_config"] = _both(chosen, {"format": format_})
    # What other models do with thoughts when thinking is not asked for is theirs.
    if version(target.model) is not None and not _thinks(fields):
        messages = without_open_thoughts(messages)
    parts: list[bytes | memoryview] = [b'{"model":', json_bytes(target.model)]
    parts += [b',"stream":true,"messages":[', *with_cache_marks(messages), b"]"]
    for name, value in fields.items():
        parts += [b",", json_bytes(name), b":", json_bytes(value)]
    parts.append(b"}")
    return Body(b"".join(parts), thinking.betas, format_ is not None)


def _output(request: ModelRequest, target: Target) -> tuple[str, Block | None]:
    """Return the instructions, and ``output_config.format`` where a document is asked for by its
    schema (platform.claude.com/docs/en/build-with-claude/structured-outputs)."""
    output = request.output
    if output is None:
        return request.instructions, None
    told = instructions_with(request.instructions, output)
    known = version(target.model)
    schema = answer_schema(output.schema)
    if not target.ask_output or known is None or known < _HAS_FORMATS or schema is None:
        return told, None
    format_: Block = {"type": "json_schema", "schema": schema}
    return told if output.again else request.instructions, format_


def _fields(
    request: ModelRequest, target: Target, messages: bytes
) -> tuple[dict[str, Any], Thinking]:
    tokens_max = request.output_tokens_max or output_tokens(target.model, target.window_tokens)
    given = request.options.get("max_tokens")
    tokens_max = given if isinstance(given, int) else tokens_max
    if request.room_tokens is not None:
        # Older models refuse a request whose answer might not fit, however short it turns out.
        tokens_max = max(1, min(tokens_max, request.room_tokens))
    thinking = thinking_of(
        target.model, request.effort, tokens_max, drop_mismatched=target.drop_mismatched
    )
    if thinking.manual and lacks_thought(messages):
        thinking = Thinking()
    fields: dict[str, Any] = {"max_tokens": tokens_max}
    if not is_blank(request.instructions):
        fields["system"] = [{"type": "text", "text": request.instructions} | _CACHED]
    # The key is left out where there is no tool.
    if request.tools:
        eager = version(target.model) is not None
        tools = [_tool(tool, eager=eager) for tool in request.tools]
        fields["tools"] = [*tools[:-1], tools[-1] | _CACHED]
    options = request.options | ({"max_tokens": tokens_max} if isinstance(given, int) else {})
    for name, value in (thinking.fields | options).items():
        # An option beside the effort, such as a format, does not take its place.
        own = thinking.fields.get(name) if name == "output_config" else None
        fields[name] = _both(own, value)
    return fields, thinking


def _both(own: Any, given: Any) -> Any:
    """Return two objects as one; what is given stands alone where one of them is none."""
    return own | given if isinstance(own, dict) and isinstance(given, dict) else given


def _thinks(fields: dict[str, Any]) -> bool:
    thinking = fields.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") != "disabled"


def _tool(tool: ToolSpec, *, eager: bool) -> Block:
    """Return a tool as the API wants it.

    ``eager``: arguments come as they are made, not checked, each when it is whole: a large file is
    seen while it is written
    (platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming).
    """
    block: Block = {"name": wire_name(tool.name), "input_schema": input_schema(tool.parameters)}
    if not is_blank(tool.description):
        block["description"] = tool.description
    return block | {"eager_input_streaming": True} if eager else block
