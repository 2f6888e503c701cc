"""The tools that a request offers, and the choice among them."""

from __future__ import annotations

from vaala.testing.validators import chat_rules as rules
from vaala.testing.validators.common import (
    JsonArray,
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    is_blank,
    show,
)
from vaala.testing.validators.json_schema import schema_faults
from vaala.testing.validators.limits import MAX_TOOLS
from vaala.testing.validators.openai_calls import check_new_name

_FUNCTION_KEYS = frozenset(("name", "description", "parameters", "strict"))
_NOT_AT_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")
_MODES = ("none", "auto", "required")


def check_tools(request: JsonObject, report: Report) -> None:
    names: set[str] = set()
    if "tools" in request:
        tools = as_array(request["tools"])
        if tools is None:
            report.add(rules.TOOLS_SHAPE, "$.tools", "is no array")
        else:
            names = _check_array(tools, report)
    else:
        for key in ("tool_choice", "parallel_tool_calls"):
            if key in request:
                message = f"{show(key)} is only allowed when 'tools' are specified"
                report.add(rules.TOOLS_ABSENT, child("$", key), message)
    if "tool_choice" in request:
        _check_choice(request["tool_choice"], names, "tools" in request, report)


def _check_array(tools: JsonArray, report: Report) -> set[str]:
    if not 1 <= len(tools) <= MAX_TOOLS:
        report.add(rules.TOOLS_COUNT, "$.tools", f"{len(tools)} tools, not 1 to {MAX_TOOLS}")
    names: set[str] = set()
    for index, value in enumerate(tools):
        path = child("$", "tools", index)
        match as_object(value):
            case {"type": "function", "function": dict() as function, **rest} if not rest:
                _check_function(function, names, child(path, "function"), report)
            case _:
                message = "a tool holds 'type': 'function' and 'function', no more"
                report.add(rules.TOOLS_SHAPE, path, message)
    return names


def _check_function(function: JsonObject, names: set[str], path: str, report: Report) -> None:
    for key in function.keys() - _FUNCTION_KEYS:
        report.add(rules.TOOLS_SHAPE, child(path, key), f"a function has no {show(key)}")
    name_rules = (rules.TOOLS_NAME, rules.TOOLS_UNIQUE)
    check_new_name(function.get("name"), names, name_rules, child(path, "name"), report)
    description = function.get("description", "absent")
    if not isinstance(description, str) or is_blank(description):
        message = f"{show(description)} is no text"
        report.add(rules.TOOLS_SHAPE, child(path, "description"), message)
    if not isinstance(function.get("strict"), bool | None):
        report.add(rules.TOOLS_SHAPE, child(path, "strict"), "is neither true nor false")
    _check_parameters(function.get("parameters"), child(path, "parameters"), report)


def _check_parameters(value: object, path: str, report: Report) -> None:
    schema = as_object(value)
    if schema is None or schema.get("type") != "object":
        kind = None if schema is None else schema.get("type")
        message = f"must be a JSON Schema of type 'object', got {show(kind)}"
        report.add(rules.TOOLS_PARAMETERS, path, message)
        return
    if "properties" not in schema:
        report.add(rules.TOOLS_PARAMETERS, path, "object schema missing properties")
    for key in _NOT_AT_TOP:
        if key in schema:
            report.add(rules.TOOLS_PARAMETERS, child(path, key), "not allowed at the top level")
    for fault in schema_faults(schema):
        report.add(rules.TOOLS_SCHEMA, child(path, *fault.keys), fault.message)


def _check_choice(value: object, names: set[str], offered: bool, report: Report) -> None:
    match value:
        case str() if value in _MODES:
            return
        case {"type": "function", "function": {"name": str() as name, **more}, **rest} if not (
            more or rest
        ):
            if offered and name not in names:
                message = f"no tool is named {show(name)}"
                report.add(rules.TOOL_CHOICE, "$.tool_choice.function.name", message)
        case _:
            message = f"{show(value)} is neither {', '.join(_MODES)} nor a named function"
            report.add(rules.TOOL_CHOICE, "$.tool_choice", message)
