"""Parameters of tools as JSON Schema that servers compile.

Tools come from anywhere. What no server takes is mended or left out, so that one tool never makes
every request fail; the check of the arguments stays with us, against the schema as it was.

OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the
top level", "object schema missing properties", "array schema missing items"; and every keyword
must be well formed by JSON Schema.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from vaala.models.limits import SCHEMA_DEPTH_MAX

_TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")
_NOT_AT_TOP = ("oneOf", "anyOf", "allOf", "enum", "not", "if", "then", "else")
_SCHEMA = ("additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_SCHEMA_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMA_MAP = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNT = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip
_TEXT = ("$ref", "pattern", "format", "title", "description", "$comment", "$schema", "$id")


def legal_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of type object that accepts at least what ``schema`` accepts of objects."""
    allowed = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP}
    top: dict[str, Any] = _legal(allowed | {"type": "object"}, 0)
    properties = top.setdefault("properties", {})
    for branch in _branches(schema):
        for name, value in branch.items():
            properties.setdefault(name, _legal(value, 1))
    return top


def _branches(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the properties that only alternatives at the top have: they are told as optional."""
    found: list[dict[str, Any]] = []
    for keyword in ("allOf", "anyOf", "oneOf"):
        listed = schema.get(keyword)
        for branch in listed if isinstance(listed, list) else ():
            properties = branch.get("properties") if isinstance(branch, dict) else None
            if isinstance(properties, dict):
                found.append(properties)
    return found


def _legal(node: Any, depth: int) -> Any:
    if isinstance(node, bool):
        return node
    if not isinstance(node, dict) or depth >= SCHEMA_DEPTH_MAX:
        return {}
    node = _without_draft_4(node)
    legal: dict[str, Any] = {}
    for key, value in node.items():
        kept = _keyword(key, value, depth)
        if kept is not None:
            legal[key] = kept
    kinds = legal.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and (
        "items" not in legal
    ):
        legal["items"] = {}
    return legal


def _without_draft_4(node: dict[str, Any]) -> dict[str, Any]:
    """Turn ``exclusiveMinimum: true`` beside ``minimum: 3`` into ``exclusiveMinimum: 3``."""
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if node.get(exclusive) is True and bound in node:
            others = {key: value for key, value in node.items() if key != bound}
            node = others | {exclusive: node[bound]}
    return node


def _keyword(key: str, value: Any, depth: int) -> Any:
    """Return the value of a keyword as it may stand, None where it may not."""
    if key == "type":
        return _kinds(value)
    if key == "required":
        return _distinct_names(value)
    if key == "enum":
        return _data(value, depth) if isinstance(value, list) and value else None
    if key == "items":
        # A list of schemas is draft 4's tuple; what it says of places is lost.
        return {} if isinstance(value, list) else _legal(value, depth + 1)
    if key in _SCHEMA:
        return _legal(value, depth + 1) if isinstance(value, bool | dict) else None
    if key in _SCHEMA_LIST:
        listed = value if isinstance(value, list) else []
        return [_legal(one, depth + 1) for one in listed] or None
    if key in _SCHEMA_MAP:
        if not isinstance(value, dict):
            return {} if key == "properties" else None
        return {str(name): _legal(one, depth + 1) for name, one in value.items()}
    return _plain(key, value, depth)


def _plain(key: str, value: Any, depth: int) -> Any:
    if key in _NUMBER:
        fits = _is_number(value) and (key != "multipleOf" or value > 0)
        return value if fits else None
    if key in _COUNT:
        return int(value) if _is_number(value) and value >= 0 and value == int(value) else None
    if key in _TEXT:
        return value if isinstance(value, str) else None
    return _data(value, depth)


def _kinds(value: Any) -> Any:
    if isinstance(value, str):
        return value if value in _TYPES else None
    listed = value if isinstance(value, list) else []
    return list(dict.fromkeys(one for one in listed if one in _TYPES)) or None


def _distinct_names(value: Any) -> list[str] | None:
    if not isinstance(value, list):
        return None
    return list(dict.fromkeys(name for name in value if isinstance(name, str)))


def _data(value: Any, depth: int) -> Any:
    """Return JSON as it is, None where it holds what JSON cannot or is too deep."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if depth >= SCHEMA_DEPTH_MAX:
        return None
    if isinstance(value, list | tuple):
        return [_data(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {str(key): _data(one, depth + 1) for key, one in value.items()}
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
