"""What the Messages API refuses, as far as its documentation and its errors tell.

Each rule quotes the refusal that it stands for.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_THOUGHTS = ("thinking", "redacted_thinking")


def complaints(body: bytes) -> list[str]:
    """Return what is wrong with a request."""
    request = json.loads(body)
    found = [*_order(request["messages"]), *_pairs(request["messages"])]
    for message in request["messages"]:
        for block in message["content"]:
            found += _block(block)
    return [*found, *_marks(request), *_tools(request.get("tools")), *_budget(request)]


def _order(messages: list[Any]) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    if roles[:1] != ["user"]:
        yield "messages: first message must use the user role"
    if roles[-1:] != ["user"]:
        yield "the conversation must end with a user message"
    if any(one == next_ for one, next_ in itertools.pairwise(roles)):
        yield "messages: roles must alternate"
    for message in messages:
        if set(message) != {"role", "content"} or not message["content"]:
            yield "all messages must have non-empty content"
        if message["role"] == "assistant" and message["content"][-1]["type"] in _THOUGHTS:
            yield "the final block in an assistant message cannot be thinking"


def _pairs(messages: list[Any]) -> Iterator[str]:
    """The results of an answer's calls come first in the next message, each once."""
    seen: set[str] = set()
    wanted: list[str] = []
    for message in messages:
        blocks = message["content"]
        results = [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
        if sorted(results) != sorted(wanted):
            yield "tool_use ids were found without tool_result blocks immediately after"
        if any(one["type"] != "tool_result" for one in blocks[: len(results)]):
            yield "tool_result blocks must come first in the content"
        wanted = [one["id"] for one in blocks if one["type"] == "tool_use"]
        if len({*wanted}) != len(wanted) or seen & {*wanted}:
            yield "tool_use ids must be unique"
        seen |= {*wanted}


def _block(block: dict[str, Any]) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            yield "text content blocks must contain non-whitespace text"
        case "thinking" if not block["signature"]:
            yield "Invalid `signature` in `thinking` block"
        case "redacted_thinking" if not block["data"]:
            yield "Invalid `data` in `redacted_thinking` block"
        case "tool_use":
            if not (_ID.fullmatch(block["id"]) and _NAME.fullmatch(block["name"])):
                yield "String should match pattern '^[a-zA-Z0-9_-]+$'"
            if not isinstance(block["input"], dict):
                yield "Input should be a valid dictionary"
        case "tool_result":
            if not block["content"]:
                yield "content cannot be empty"
            for inner in block["content"]:
                yield from _block(inner)
        case _:
            pass


def _marks(request: dict[str, Any]) -> Iterator[str]:
    blocks = [block for message in request["messages"] for block in message["content"]]
    marked = [*blocks, *request.get("system", ()), *request.get("tools", ())]
    marked = [block for block in marked if "cache_control" in block]
    if len(marked) > 4:
        yield "A maximum of 4 blocks with cache_control may be provided"
    if any(block.get("type") in _THOUGHTS for block in marked):
        yield "cache_control: thinking blocks cannot be marked"


def _tools(tools: Any) -> Iterator[str]:
    if tools == []:
        yield "tools: an empty list"
    names = [tool["name"] for tool in tools or ()]
    if len({*names}) != len(names):
        yield "tools: Tool names must be unique"
    for tool in tools or ():
        schema = tool["input_schema"]
        if not _NAME.fullmatch(tool["name"]):
            yield "tools: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
        if schema.get("type") != "object" or {"oneOf", "anyOf", "allOf"} & set(schema):
            yield "input_schema does not support oneOf, allOf, or anyOf at the top level"
        if not all(map(_PROPERTY.fullmatch, schema.get("properties", {}))):
            yield "Property keys should match pattern"
        if not tool.get("description", "x"):
            yield "description: at least one character"


def _budget(request: dict[str, Any]) -> Iterator[str]:
    tokens = request["max_tokens"]
    if not isinstance(tokens, int) or tokens < 1:
        yield "max_tokens: must be at least 1"
    thinking = request.get("thinking", {})
    if thinking.get("type") != "enabled":
        return
    if not 1024 <= thinking["budget_tokens"] < tokens:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`, which is at least 1024"
    firsts = [message["content"][0]["type"] for message in request["messages"]]
    if firsts[-1] == "tool_result" and firsts[-2] not in _THOUGHTS:
        yield "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
