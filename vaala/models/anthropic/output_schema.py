"""Schemas of answers as the API compiles them.

Each object is closed ("For 'object' type, 'additionalProperties' must be explicitly set to
false"), nothing is recursive, and bounds are told in words, as the SDKs of Anthropic do
(platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vaala.models.output import is_object
from vaala.models.wire import json_bytes

Schema = dict[str, Any]

_KEPT = ("title", "description", "enum", "const", "default", "$ref")
_FORMATS = (
    *("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"),
    "uuid",
)
_TOLD = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties"),
)
_OF_KIND = {"object": ("properties", "required", "additionalProperties"), "array": ("items",)}
_LEVELS_MAX = 64
"""References followed and schemas within each other; what is deeper is recursive."""


class _CannotSay(Exception):
    """The API has no words for this."""


def answer_schema(schema: Schema) -> Schema | None:
    """Return a schema to be sent, None where the API cannot say this one.

    It takes no less than ``schema`` does, but for objects with names that no schema tells.
    """
    if not is_object(schema) or "anyOf" in schema or "oneOf" in schema:
        return None
    try:
        _check_depth(schema, schema, 0)
        return _rewritten(schema)
    except _CannotSay:
        return None


def _check_depth(node: Any, root: Schema, depth: int) -> None:
    if depth > _LEVELS_MAX:
        raise _CannotSay
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        _check_depth(_target(node["$ref"], root), root, depth + 1)
    for one in _below(node):
        _check_depth(one, root, depth + 1)


def _target(reference: str, root: Schema) -> Any:
    head, keyword, name = (*reference.split("/"), "", "")[:3]
    if head != "#" or name not in root.get(keyword, {}) or reference.count("/") != 2:
        raise _CannotSay
    return root[keyword][name]


def _below(node: Schema) -> Iterable[Any]:
    return (*node.get("properties", {}).values(), *_branches(node), node.get("items"))


def _branches(node: Schema) -> list[Any]:
    return [*node.get("anyOf", ()), *node.get("oneOf", ())]


def _rewritten(node: Any) -> Schema:
    if not isinstance(node, dict):
        raise _CannotSay
    if "allOf" in node or "prefixItems" in node or "patternProperties" in node:
        raise _CannotSay
    found: Schema = {key: node[key] for key in _KEPT if key in node}
    kinds = node.get("type")
    if branches := _branches(node):
        if "type" in node or "$ref" in node:
            raise _CannotSay
        found["anyOf"] = [_rewritten(branch) for branch in branches]
    elif isinstance(kinds, list) and "enum" not in node:
        found["anyOf"] = [_rewritten(_of_kind(node, kind)) for kind in kinds]
    elif isinstance(kinds, str):
        found |= _typed(node, kinds)
    elif not found.keys() & {"enum", "const", "$ref"}:
        raise _CannotSay
    if any(isinstance(value, dict | list) for value in (node.get("const"), *node.get("enum", ()))):
        raise _CannotSay
    for key in ("$defs", "definitions"):
        if key in node:
            found[key] = {name: _rewritten(one) for name, one in node[key].items()}
    return found | _told(node, found)


def _of_kind(node: Schema, kind: str) -> Schema:
    """Return what a schema of many types says of one of them."""
    others = {key for other, keys in _OF_KIND.items() if other != kind for key in keys}
    hidden = {"type", "title", "description", "default", "$defs", "definitions", *others}
    return {key: value for key, value in node.items() if key not in hidden} | {"type": kind}


def _typed(node: Schema, kind: str) -> Schema:
    found: Schema = {"type": kind}
    if kind == "object":
        if node.get("additionalProperties", False) not in (False, True):
            raise _CannotSay
        if not node.get("properties") and node.get("additionalProperties") is not False:
            raise _CannotSay
        properties = node.get("properties", {})
        found["properties"] = {name: _rewritten(one) for name, one in properties.items()}
        found["required"] = [name for name in node.get("required", ()) if name in properties]
        if len(found["required"]) < len(set(node.get("required", ()))):
            raise _CannotSay
        found["additionalProperties"] = False
    if kind == "array":
        found["items"] = _rewritten(node.get("items"))
        if node.get("minItems") in (0, 1):
            found["minItems"] = node["minItems"]
    if node.get("format") in _FORMATS and kind == "string":
        found["format"] = node["format"]
    return found


def _told(node: Schema, found: Schema) -> Schema:
    """Return the description, with what the schema cannot say."""
    bounds = [
        f"{key}: {json_bytes(node[key]).decode()}"
        for key in _TOLD
        if key in node and key not in found
    ]
    if not bounds:
        return {}
    text = f"({', '.join(bounds)})"
    return {"description": f"{found['description']} {text}" if "description" in found else text}
