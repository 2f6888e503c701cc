"""Is a JSON Schema well formed, as servers demand that compile it?

A subset of draft 7 and 2020-12: the keywords that tools use. Unknown keywords are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from vaala.testing.validators.common import JsonArray, JsonObject, as_array, as_object, show

Keys: TypeAlias = tuple[str | int, ...]

_TYPES = frozenset(("null", "boolean", "object", "array", "number", "integer", "string"))
_SCHEMA = ("additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_SCHEMA_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMA_MAP = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


@dataclass(frozen=True, slots=True)
class Fault:
    """A keyword that no server could compile. ``keys`` lead to it from the schema's root."""

    keys: Keys
    message: str


def schema_faults(schema: JsonObject, *, draft_2020: bool = False) -> Iterator[Fault]:
    """Every fault of ``schema`` and of the schemas inside it. The nesting is bounded already.

    ``draft_2020`` reads it as draft 2020-12 alone: an array needs no ``items``, and they are one
    schema.
    """
    for keys, value in subschemas(schema):
        if isinstance(value, bool):
            continue
        node = as_object(value)
        if node is None:
            yield Fault(keys, f"is no schema but {type(value).__name__}")
            continue
        for keyword, (what, fits) in _KEYWORDS.items():
            if keyword in node and not fits(node[keyword]):
                yield Fault((*keys, keyword), f"{show(node[keyword])} is not {what}")
        if draft_2020 and isinstance(node.get("items"), list):
            yield Fault((*keys, "items"), "is one schema in this draft, not an array of them")
        if not draft_2020 and _names_array(node.get("type")) and "items" not in node:
            yield Fault(keys, "array schema missing items")


def output_schema_faults(schema: JsonObject, *, strict: bool) -> Iterator[Fault]:
    """Every fault of a schema of an answer, as OpenAI's formats have it."""
    if schema.get("type") != "object":
        yield Fault((), f"schema must be of type 'object', got {show(schema.get('type'))}")
    yield from schema_faults(schema)
    if strict:
        yield from open_objects(schema, all_required=True)


def open_objects(schema: JsonObject, *, all_required: bool) -> Iterator[Fault]:
    """Every object in ``schema`` that an answer cannot be held to: it is not closed, or with
    ``all_required`` leaves a property open."""
    for keys, value in subschemas(schema):
        node = as_object(value)
        if node is None or not _names_object(node.get("type")):
            continue
        if node.get("additionalProperties") is not False:
            yield Fault(keys, "'additionalProperties' must be there, and false")
        names = set(as_object(node.get("properties")) or ())
        if all_required and names != set(map(str, as_array(node.get("required")) or ())):
            yield Fault(keys, "'required' must have every key of 'properties'")


def subschemas(schema: JsonObject) -> Iterator[tuple[Keys, object]]:
    """``schema`` and what stands inside it where a schema belongs, with the keys to it."""
    pending: list[tuple[Keys, object]] = [((), schema)]
    while pending:
        keys, value = pending.pop()
        yield keys, value
        if (node := as_object(value)) is not None:
            pending.extend((keys + more, inner) for more, inner in _schemas_in(node))


def _schemas_in(node: JsonObject) -> Iterator[tuple[Keys, object]]:
    for keyword in _SCHEMA:
        if keyword in node:
            yield (keyword,), node[keyword]
    for keyword in _SCHEMA_LIST:
        for index, inner in enumerate(as_array(node.get(keyword)) or ()):
            yield (keyword, index), inner
    for keyword in _SCHEMA_MAP:
        for name, inner in (as_object(node.get(keyword)) or {}).items():
            yield (keyword, name), inner
    if (items := as_array(node.get("items"))) is not None:
        yield from ((("items", index), inner) for index, inner in enumerate(items))
    elif "items" in node:
        yield ("items",), node["items"]


def _names_array(kind: object) -> bool:
    return kind == "array" or "array" in (as_array(kind) or ())


def _names_object(kind: object) -> bool:
    return kind == "object" or "object" in (as_array(kind) or ())


def _is_type(value: object) -> bool:
    names: JsonArray | None = [value] if isinstance(value, str) else as_array(value)
    if not names or not all(isinstance(name, str) for name in names):
        return False
    return len(set(map(str, names))) == len(names) and _TYPES.issuperset(map(str, names))


def _is_name_list(value: object) -> bool:
    names = as_array(value)
    return (
        names is not None
        and all(isinstance(name, str) for name in names)
        and len(set(map(str, names))) == len(names)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_full_list(value: object) -> bool:
    return bool(as_array(value))


def _is_object(value: object) -> bool:
    return as_object(value) is not None


_NUMBER = ("a number", _is_number)
_COUNT = ("a whole number from 0", _is_count)
_STRING = ("a string", _is_string)
_FULL_LIST = ("an array with an item", _is_full_list)
_OBJECT = ("an object", _is_object)
_KEYWORDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "type": ("a type or an array of distinct types", _is_type),
    "required": ("an array of distinct names", _is_name_list),
    "enum": _FULL_LIST,
    **dict.fromkeys(_SCHEMA_LIST, _FULL_LIST),
    **dict.fromkeys(_SCHEMA_MAP, _OBJECT),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    "multipleOf": ("a number above 0", _is_positive),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("$ref", "pattern", "format", "title", "description"), _STRING),
}
