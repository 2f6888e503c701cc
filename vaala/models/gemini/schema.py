"""The parameters of a tool in the part of JSON Schema that this API takes.

A keyword that it does not know makes the server refuse the request with all its tools, so each
schema is rewritten to the keywords of its list: ``type``, ``description``, ``enum`` of texts and
numbers, ``items``, ``minItems``, ``maxItems``, ``minimum``, ``maximum``, ``anyOf``, ``properties``,
``additionalProperties``, ``required`` and few ``format`` (ai.google.dev/api/generate-content,
responseJsonSchema). References are written out: beside one no other keyword may stand. What is
lost makes the schema wider, never narrower, and the tool checks its arguments anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from vaala.models.gemini.limits import SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX

Schema = dict[str, Any]

_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_FORMATS = {"string": ("date-time",), "number": ("float", "double"), "integer": ("int32", "int64")}
"""Older servers know no other format of a text ("only 'enum' and 'date-time' are supported for
STRING type": github.com/hideya/langchain-mcp-tools-ts/issues/36)."""
_TOLD = ("format", "pattern")
"""Keywords that are told to the model in words instead."""
_BOUNDS = ("minimum", "maximum", "minItems", "maxItems")


def normalised(schema: Mapping[str, Any]) -> Schema:
    """Return the schema of a tool's parameters, always an object with ``properties``."""
    whole = _Rewriter(schema).rewrite(schema, 0, ())
    if "anyOf" in whole:
        whole = {**whole, **_one_of_all(whole["anyOf"])}
    found: Schema = {"type": "object", "properties": whole.get("properties", {})}
    for key in ("description", "required", "additionalProperties"):
        if key in whole:
            found[key] = whole[key]
    return found


def open_api(schema: Mapping[str, Any]) -> Schema:
    """Return a normalised schema in the older form, a part of OpenAPI 3.0.

    There a schema has one type, null is a property of it, an enum holds texts, and ``anyOf`` stands
    alone ("when using any_of, it must be the only field set").
    """
    kinds = schema.get("type", "string")
    if isinstance(kinds, list):
        return open_api({**schema, "type": kinds[0]}) | {"nullable": True}
    if "anyOf" in schema:
        nullable = {"nullable": True} if {"type": "null"} in schema["anyOf"] else {}
        told = {"description": schema["description"]} if "description" in schema else {}
        branches = [branch for branch in schema["anyOf"] if branch != {"type": "null"}]
        return {"anyOf": [told | open_api(branch) | nullable for branch in branches]}
    found: Schema = {"type": kinds}
    for key in ("description", "format", "required", *_BOUNDS):
        if key in schema:
            found[key] = schema[key]
    if kinds == "string" and "enum" in schema:
        found["enum"] = schema["enum"]
    if kinds == "array":
        found["items"] = open_api(schema.get("items", {}))
    if schema.get("properties"):
        found["properties"] = {key: open_api(one) for key, one in schema["properties"].items()}
    return found


class _Rewriter:
    """Rewrites the schemas of one document, and counts them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._nodes = 0

    def rewrite(self, schema: Any, depth: int, within: tuple[str, ...]) -> Schema:
        """Return ``schema`` rewritten; ``within`` are the references that it stands in."""
        self._nodes += 1
        if not isinstance(schema, Mapping) or self._nodes > SCHEMA_NODES_MAX:
            return {}
        if depth > SCHEMA_DEPTH_MAX:
            return {}
        target = schema.get("$ref")
        if isinstance(target, str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            if target in within:
                return _described({}, rest)
            merged = _merged([self._referenced(target), rest])
            return self.rewrite(merged, depth + 1, (*within, target))
        parts = schema.get("allOf")
        if isinstance(parts, list) and parts:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            whole = [self._resolved(part, within) for part in parts]
            return self.rewrite(_merged([*whole, rest]), depth + 1, within)
        branches = self._branches(schema, depth, within)
        if branches:
            return _described(_any_of(branches), schema)
        return self._typed(schema, depth, within)

    def _resolved(self, part: Any, within: tuple[str, ...]) -> Any:
        """Return a part of ``allOf``, or what it refers to, so that it can be merged."""
        if isinstance(part, Mapping) and isinstance(part.get("$ref"), str):
            return {} if part["$ref"] in within else self._referenced(part["$ref"])
        return part

    def _referenced(self, target: str) -> Any:
        """Return what a reference inside of the document names, or a schema that takes all."""
        found: Any = self._document
        if target != "#" and not target.startswith("#/"):
            return {}
        for key in target.split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                return {}
            found = found[key]
        return found

    def _branches(
        self, schema: Mapping[str, Any], depth: int, within: tuple[str, ...]
    ) -> list[Schema]:
        """Return the alternatives of a schema, those of a list of types too; empty: it has none."""
        found: list[Any] = []
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                found += schema[key]
        # Beside properties, alternatives mostly say which of them are required together.
        if "properties" in schema or not any(map(_says_more_than_required, found)):
            found = []
        kinds = schema.get("type")
        if not found and isinstance(kinds, list):
            rest = {key: value for key, value in schema.items() if key not in _NOT_IN_BRANCHES}
            found = [{**rest, "type": kind} for kind in dict.fromkeys(map(str, kinds))]
        return [
            {"type": "null"} if _is_null(branch) else self.rewrite(branch, depth + 1, within)
            for branch in found
        ]

    def _typed(self, schema: Mapping[str, Any], depth: int, within: tuple[str, ...]) -> Schema:
        values = _values(schema)
        kind = _kind(schema, values)
        found: Schema = {} if kind is None else {"type": kind}
        if kind in ("string", "number", "integer") and values and _are(kind, values):
            found["enum"] = values
        if kind is not None and schema.get("format") in _FORMATS.get(kind, ()):
            found["format"] = schema["format"]
        if kind in ("number", "integer"):
            found |= _number_bounds(schema, whole=kind == "integer")
        elif kind == "array":
            found["items"] = self._items(schema, depth, within)
            for key in ("minItems", "maxItems"):
                if (bound := _count(schema.get(key))) is not None:
                    found[key] = bound
        elif kind == "object":
            found |= self._object(schema, depth, within)
        if kind is not None and None in _raw_values(schema):
            found = _any_of([found, {"type": "null"}])
        return _described(found, schema)

    def _items(self, schema: Mapping[str, Any], depth: int, within: tuple[str, ...]) -> Schema:
        """Return the schema of elements; those of a tuple become alternatives."""
        items = schema.get("prefixItems", schema.get("items"))
        if isinstance(items, list):
            return _any_of([self.rewrite(one, depth + 1, within) for one in items])
        return self.rewrite(items, depth + 1, within)

    def _object(self, schema: Mapping[str, Any], depth: int, within: tuple[str, ...]) -> Schema:
        given = schema.get("properties")
        pairs = given.items() if isinstance(given, Mapping) else ()
        properties = {str(key): self.rewrite(one, depth + 1, within) for key, one in pairs}
        found: Schema = {"properties": properties} if properties else {}
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        if listed := [name for name in dict.fromkeys(map(str, names)) if name in properties]:
            found["required"] = listed
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            if wanted := self.rewrite(more, depth + 1, within):
                found["additionalProperties"] = wanted
        elif isinstance(more, bool) and (more or not schema.get("patternProperties")):
            found["additionalProperties"] = more
        return found


_NOT_IN_BRANCHES = ("type", "description", "title", "anyOf", "oneOf")


def _merged(parts: Iterable[Any]) -> dict[str, Any]:
    """Return one schema for several that hold together; of two values the later one counts."""
    whole: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        for key, value in part.items():
            before = whole.get(key)
            if key == "properties" and isinstance(before, dict) and isinstance(value, Mapping):
                whole[key] = {**before, **value}
            elif key in ("required", "allOf") and isinstance(before, list):
                whole[key] = [*before, *(value if isinstance(value, list) else ())]
            else:
                whole[key] = value
    return whole


def _one_of_all(branches: Iterable[Schema]) -> Schema:
    """Return one object for the alternatives of a whole schema: all their properties, and
    required is what all of them require."""
    objects = [branch for branch in branches if branch.get("type") == "object"]
    properties: dict[str, Any] = {}
    for branch in objects:
        properties |= branch.get("properties", {})
    required = [set(branch.get("required", ())) for branch in objects]
    common = set.intersection(*required) if required else set[str]()
    listed = [name for name in properties if name in common]
    return {"properties": properties} | ({"required": listed} if listed else {})


def _any_of(branches: Iterable[Schema]) -> Schema:
    """Return the alternatives as one schema, each once; null is a second type where it can be."""
    found: list[Schema] = []
    for branch in branches:
        found += [one for one in branch.get("anyOf", [branch]) if one not in found]
    null = {"type": "null"}
    real = [branch for branch in found if branch != null]
    if not real or {} in real:
        return {}
    only = real[0]
    if len(real) == 1 and null not in found:
        return only
    # An enum holds no null, so beside one null is an alternative.
    if len(real) == 1 and isinstance(only.get("type"), str) and "enum" not in only:
        return {**only, "type": [only["type"], "null"]}
    return {"anyOf": found}


def _says_more_than_required(branch: Any) -> bool:
    return isinstance(branch, Mapping) and bool(set(branch) - {"required", "not", "description"})


def _is_null(branch: Any) -> bool:
    return isinstance(branch, Mapping) and branch.get("type") == "null"


def _raw_values(schema: Mapping[str, Any]) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else []


def _values(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values of an enum that can be told: no null, no empty text, each once."""
    found: list[Any] = []
    for value in _raw_values(schema):
        if value is not None and value != "" and value not in found:
            found.append(value)
    return found


def _kind(schema: Mapping[str, Any], values: list[Any]) -> str | None:
    """Return the type, also where only other keywords tell it; None: any."""
    kind = schema.get("type")
    if isinstance(kind, str) and kind.lower() in _TYPES:
        return kind.lower()
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return next((one for one in ("string", "integer", "number") if _are(one, values)), None)


def _are(kind: str, values: list[Any]) -> bool:
    if kind == "string":
        return bool(values) and all(isinstance(value, str) for value in values)
    wanted = int if kind == "integer" else int | float
    return bool(values) and all(
        isinstance(value, wanted) and _number(value) is not None for value in values
    )


def _number_bounds(schema: Mapping[str, Any], *, whole: bool) -> Schema:
    """Return the bounds with their borders included; an open border of a real number is wider."""
    found: Schema = {}
    for key, step in (("minimum", 1), ("maximum", -1)):
        bound = _number(schema.get(key))
        border = _number(schema.get(f"exclusive{key.capitalize()}"))
        if border is not None:
            inner = border + step if whole and border == int(border) else border
            better = max if step == 1 else min
            bound = inner if bound is None else better(bound, inner)
        if bound is not None:
            found[key] = bound
    return found


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or isfinite(value) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _described(found: Schema, schema: Mapping[str, Any]) -> Schema:
    """Add the description, and in words what the schema cannot say."""
    description = schema.get("description")
    words = [description] if isinstance(description, str) and description.strip() else []
    for key in _TOLD:
        value = schema.get(key)
        if isinstance(value, str) and value and key not in found:
            words.append(f"({key}: {value})")
    return {**found, "description": " ".join(words)} if words else found
