"""The tools that a Messages request offers, and the choice among them."""

from __future__ import annotations

import re
from typing import Any

from vaala.testing.validators import anthropic_rules as rules
from vaala.testing.validators.anthropic_blocks import TOOL_NAME
from vaala.testing.validators.anthropic_messages import blocks_of
from vaala.testing.validators.common import (
    JsonArray,
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.json_schema import schema_faults
from vaala.testing.validators.limits import CLAUDE_MAX_PROPERTY_CHARS, MAX_NAME_CHARS
from vaala.testing.validators.values import is_flag, shape

_TOOL = shape(
    "name input_schema",
    "type description cache_control strict defer_loading allowed_callers eager_input_streaming "
    "input_examples",
)
_SERVER_TYPE = re.compile(r"[a-z0-9_]+_[0-9]{8}")
_PROPERTY = re.compile(rf"[a-zA-Z0-9_.-]{{1,{CLAUDE_MAX_PROPERTY_CHARS}}}")
_NOT_AT_TOP = ("oneOf", "allOf", "anyOf")
_TOOL_BLOCKS = ("tool_use", "tool_result")


def check_tools(request: JsonObject, demanded: bool, report: Report) -> None:
    """Check them. ``demanded``: without tools there may be no block of a tool either."""
    names: set[str] = set()
    tools = as_array(request.get("tools"))
    if tools is not None:
        names = _check_array(tools, report)
    elif "tools" in request:
        report.add(rules.TOOLS_SHAPE, "$.tools", "is no array")
    if demanded and not tools and _has_tool_blocks(request):
        report.add(rules.TOOLS_DEMANDED, "$", "requests with tool blocks must define tools")
    if "tool_choice" in request:
        offered = request.get("tools", []) != []
        _check_choice(request["tool_choice"], names, offered, report)


def _has_tool_blocks(request: JsonObject) -> bool:
    return any(
        block.get("type") in _TOOL_BLOCKS
        for message in as_array(request.get("messages")) or ()
        for block in blocks_of(as_object(message) or {})
    )


def _check_array(tools: JsonArray, report: Report) -> set[str]:
    names: set[str] = set()
    for index, value in enumerate(tools):
        path = child("$", "tools", index)
        tool = as_object(value)
        if tool is None:
            report.add(rules.TOOLS_SHAPE, path, f"is no object but {type(value).__name__}")
            continue
        _check_name(tool.get("name"), names, child(path, "name"), report)
        kind = tool.get("type")
        if kind is None or kind == "custom":
            if _TOOL.check(tool, rules.TOOLS_SHAPE, path, report):
                _check_custom(tool, path, report)
        elif not isinstance(kind, str) or _SERVER_TYPE.fullmatch(kind) is None:
            report.add(rules.TOOLS_SHAPE, child(path, "type"), f"{show(kind)} is no type of tool")
    return names


def _check_name(name: object, names: set[str], path: str, report: Report) -> None:
    if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
        message = f"{show(name)} is not 1 to {MAX_NAME_CHARS} letters, digits, '_' and '-'"
        report.add(rules.TOOLS_NAME, path, message)
    elif name in names:
        report.add(rules.TOOLS_UNIQUE, path, "tool names must be unique")
    else:
        names.add(name)


def _check_custom(tool: JsonObject, path: str, report: Report) -> None:
    if not isinstance(tool.get("description", ""), str):
        report.add(rules.TOOLS_SHAPE, child(path, "description"), "is no text")
    for key in ("strict", "defer_loading"):
        if not is_flag(tool.get(key, False)):
            report.add(rules.TOOLS_SHAPE, child(path, key), "is neither true nor false")
    path = child(path, "input_schema")
    schema = as_object(tool["input_schema"])
    if schema is None or schema.get("type") != "object":
        kind = None if schema is None else schema.get("type")
        message = f"must be a JSON Schema of type 'object', got {show(kind)}"
        report.add(rules.TOOLS_INPUT, path, message)
        return
    for key in _NOT_AT_TOP:
        if key in schema:
            report.add(rules.TOOLS_INPUT, child(path, key), "not supported at the top level")
    for name in as_object(schema.get("properties")) or {}:
        if _PROPERTY.fullmatch(name) is None:
            message = f"{show(name)} does not match {_PROPERTY.pattern}"
            report.add(rules.TOOLS_PROPERTY, child(path, "properties"), message)
    for fault in schema_faults(schema, draft_2020=True):
        report.add(rules.TOOLS_SCHEMA, child(path, *fault.keys), fault.message)


def _check_choice(value: object, names: set[str], offered: bool, report: Report) -> None:
    path = "$.tool_choice"
    match as_object(value):
        case {"type": "auto" | "any", **rest} if _is_parallel_flag(rest):
            pass
        case {"type": "none", **rest} if not rest:
            return
        case {"type": "tool", "name": str() as name, **rest} if _is_parallel_flag(rest):
            if offered and name not in names:
                report.add(rules.TOOL_CHOICE, child(path, "name"), f"no tool is named {show(name)}")
        case _:
            report.add(rules.TOOL_CHOICE, path, f"{show(value)} is no choice of a tool")
            return
    if not offered:
        report.add(rules.TOOL_CHOICE, path, "may only be specified while providing tools")


def _is_parallel_flag(rest: dict[Any, Any]) -> bool:
    return rest.keys() <= {"disable_parallel_tool_use"} and all(map(is_flag, rest.values()))
