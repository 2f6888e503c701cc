"""The tools that a generateContent request offers, and which of them the model may call."""

from __future__ import annotations

from vaala.testing.validators import gemini_rules as rules
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.gemini_fields import fields_of
from vaala.testing.validators.gemini_parts import FUNCTION_NAME
from vaala.testing.validators.gemini_schema import check_schema, schema_type
from vaala.testing.validators.json_schema import schema_faults
from vaala.testing.validators.values import is_one_of

_SERVER_TOOLS = ("googleSearch", "codeExecution", "urlContext", "fileSearch", "googleMaps")
_TOOL = frozenset(("functionDeclarations", "computerUse", *_SERVER_TOOLS))
_FUNCTION = frozenset(
    (
        *("name", "description", "parameters", "parametersJsonSchema"),
        *("response", "responseJsonSchema", "behavior"),
    )
)
_CALLING = frozenset(("mode", "allowedFunctionNames"))
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")
_NAMING_MODES = ("ANY", "VALIDATED")


def check_tools(request: JsonObject, report: Report) -> None:
    """Check ``tools`` and ``toolConfig``, whose fields the request has by lower camel names."""
    names: set[str] = set()
    tools = as_array(request.get("tools", []))
    if tools is None:
        report.add(rules.TOOLS_SHAPE, "$.tools", "is no array")
    for index, value in enumerate(tools or ()):
        path = child("$", "tools", index)
        tool = fields_of(value, _TOOL, path, report)
        if tool is not None:
            _check_tool(tool, names, path, report)
    if "toolConfig" in request:
        _check_config(request["toolConfig"], names, report)


def _check_tool(tool: JsonObject, names: set[str], path: str, report: Report) -> None:
    if not tool:
        report.add(rules.TOOLS_SHAPE, path, "an empty tool")
    for key in _SERVER_TOOLS:
        if key in tool and as_object(tool[key]) is None:
            report.add(rules.TOOLS_SHAPE, child(path, key), "is no object")
    if "functionDeclarations" not in tool:
        return
    path = child(path, "functionDeclarations")
    functions = as_array(tool["functionDeclarations"])
    if not functions:
        report.add(rules.TOOLS_SHAPE, path, "is no array with at least one declaration")
    for index, value in enumerate(functions or ()):
        function = fields_of(value, _FUNCTION, child(path, index), report)
        if function is not None:
            _check_function(function, names, child(path, index), report)


def _check_function(function: JsonObject, names: set[str], path: str, report: Report) -> None:
    name = function.get("name")
    if not isinstance(name, str) or FUNCTION_NAME.fullmatch(name) is None:
        message = f"{show(name)} is no legal name of a function"
        report.add(rules.TOOLS_NAME, child(path, "name"), message)
    elif name in names:
        report.add(rules.TOOLS_UNIQUE, child(path, "name"), f"a second one named {show(name)}")
    else:
        names.add(name)
    if not isinstance(function.get("description", ""), str):
        report.add(rules.TOOLS_SHAPE, child(path, "description"), "is no text")
    if "parameters" in function and "parametersJsonSchema" in function:
        report.add(rules.TOOLS_PARAMETERS, path, "two schemas exclude each other")
    if "parameters" in function:
        schema, schema_path = function["parameters"], child(path, "parameters")
        if (as_object(schema) or {}).get("type") is not None and schema_type(schema) != "OBJECT":
            report.add(rules.TOOLS_PARAMETERS, schema_path, "is not of type OBJECT")
        check_schema(schema, schema_path, report)
    if "parametersJsonSchema" in function:
        path = child(path, "parametersJsonSchema")
        _check_json_schema(function["parametersJsonSchema"], path, report)


def _check_json_schema(value: object, path: str, report: Report) -> None:
    schema = as_object(value)
    if schema is None or schema.get("type") != "object":
        report.add(rules.TOOLS_JSON_SCHEMA, path, "is no JSON Schema of type 'object'")
        return
    for fault in schema_faults(schema):
        report.add(rules.TOOLS_JSON_SCHEMA, child(path, *fault.keys), fault.message)


def _check_config(value: object, names: set[str], report: Report) -> None:
    path = "$.toolConfig"
    config = fields_of(value, ("functionCallingConfig", "retrievalConfig"), path, report)
    if config is None or "functionCallingConfig" not in config:
        return
    path = child(path, "functionCallingConfig")
    calling = fields_of(config["functionCallingConfig"], _CALLING, path, report)
    if calling is None:
        return
    mode = calling.get("mode", "AUTO")
    if not is_one_of(mode, _MODES):
        report.add(rules.TOOL_CONFIG, child(path, "mode"), f"is none of {', '.join(_MODES)}")
    elif "allowedFunctionNames" in calling:
        path = child(path, "allowedFunctionNames")
        allowed = as_array(calling["allowedFunctionNames"])
        if mode not in _NAMING_MODES:
            report.add(rules.TOOL_CONFIG, path, f"only with mode {' or '.join(_NAMING_MODES)}")
        elif not allowed or (names and any(name not in names for name in map(str, allowed))):
            report.add(rules.TOOL_CONFIG, path, f"{show(allowed)} is not among the declarations")
