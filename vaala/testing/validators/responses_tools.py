"""The tools that a Responses request offers, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterator

from vaala.testing.validators import responses_rules as rules
from vaala.testing.validators.common import (
    JsonArray,
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.json_schema import Keys, schema_faults, subschemas
from vaala.testing.validators.limits import MAX_TOOLS
from vaala.testing.validators.openai_calls import check_new_name
from vaala.testing.validators.values import shape

_FUNCTION = shape("type name parameters", "description strict defer_loading")
_SERVER_TOOLS = frozenset(
    (
        *("web_search", "web_search_preview", "file_search", "code_interpreter", "mcp"),
        *("image_generation", "local_shell", "shell", "apply_patch", "tool_search"),
    )
)
_NOT_AT_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")
_MODES = ("none", "auto", "required")


def check_tools(request: JsonObject, report: Report) -> None:
    names: set[str] = set()
    tools = as_array(request.get("tools"))
    if tools is not None:
        names = _check_array(tools, report)
    elif "tools" in request:
        report.add(rules.TOOLS_SHAPE, "$.tools", "is no array")
    if "tool_choice" in request:
        _check_choice(request["tool_choice"], names, report)


def _check_array(tools: JsonArray, report: Report) -> set[str]:
    if len(tools) > MAX_TOOLS:
        report.add(rules.TOOLS_COUNT, "$.tools", f"{len(tools)} tools are more than {MAX_TOOLS}")
    names: set[str] = set()
    for index, value in enumerate(tools):
        path = child("$", "tools", index)
        tool = as_object(value)
        kind = None if tool is None else tool.get("type")
        if tool is None or not isinstance(kind, str) or kind not in {"function", *_SERVER_TOOLS}:
            report.add(rules.TOOLS_SHAPE, path, f"{show(kind)} is no type of tool")
        elif kind == "function" and _FUNCTION.check(tool, rules.TOOLS_SHAPE, path, report):
            _check_function(tool, names, path, report)
    return names


def _check_function(tool: JsonObject, names: set[str], path: str, report: Report) -> None:
    name_rules = (rules.TOOLS_NAME, rules.TOOLS_UNIQUE)
    check_new_name(tool["name"], names, name_rules, child(path, "name"), report)
    if not isinstance(tool.get("description"), str | None):
        report.add(rules.TOOLS_SHAPE, child(path, "description"), "is no text")
    strict = tool.get("strict")
    if not isinstance(strict, bool | None):
        report.add(rules.TOOLS_SHAPE, child(path, "strict"), "is neither true nor false")
    path = child(path, "parameters")
    schema = as_object(tool["parameters"])
    if schema is None or schema.get("type") != "object":
        kind = None if schema is None else schema.get("type")
        message = f"must be a JSON Schema of type 'object', got {show(kind)}"
        report.add(rules.TOOLS_PARAMETERS, path, message)
        return
    _check_parameters(schema, path, report)
    if strict is True:
        for keys, message in _lax(schema):
            report.add(rules.TOOLS_STRICT, child(path, *keys), message)


def _check_parameters(schema: JsonObject, path: str, report: Report) -> None:
    if "properties" not in schema:
        report.add(rules.TOOLS_PARAMETERS, path, "object schema missing properties")
    for key in _NOT_AT_TOP:
        if key in schema:
            report.add(rules.TOOLS_PARAMETERS, child(path, key), "not allowed at the top level")
    for fault in schema_faults(schema):
        report.add(rules.TOOLS_SCHEMA, child(path, *fault.keys), fault.message)


def _lax(schema: JsonObject) -> Iterator[tuple[Keys, str]]:
    """Where objects leave open what they hold."""
    for keys, value in subschemas(schema):
        node = as_object(value)
        if node is None or node.get("type") != "object":
            continue
        if node.get("additionalProperties") is not False:
            yield keys, "'additionalProperties' is required to be supplied and to be false"
        properties = as_object(node.get("properties")) or {}
        required = as_array(node.get("required")) or []
        if any(name not in required for name in properties):
            yield keys, "'required' is required to include every key in properties"


def _check_choice(value: object, names: set[str], report: Report) -> None:
    path = "$.tool_choice"
    match value:
        case str() if value in _MODES:
            return
        case {"type": "function", "name": str() as name, **rest} if not rest:
            if name not in names:
                report.add(rules.TOOL_CHOICE, child(path, "name"), f"no tool is named {show(name)}")
        case {"type": str() as kind, **rest} if not rest and kind in _SERVER_TOOLS:
            pass
        case {"type": "allowed_tools", "mode": "auto" | "required", "tools": list(), **rest} if (
            not rest
        ):
            pass
        case _:
            message = f"{show(value)} is neither {', '.join(_MODES)} nor a named tool"
            report.add(rules.TOOL_CHOICE, path, message)
