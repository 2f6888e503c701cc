"""JSON Schema of tools from elsewhere: whether one is fit to be sent, and arguments against it.

Checked are types, enumerations, properties, items, bounds, alternatives and references within the
schema. What is left to whoever runs the tool: patterns, since an expression from elsewhere may
take for ever, conditions and formats. No reference is ever fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from vaala.services import limits
from vaala.tools.text import clean_line

_Check: TypeAlias = Callable[[Any], bool]

_TYPES: dict[str, _Check] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
}
_BOUNDS: dict[str, tuple[_Check, Callable[[Any, Any], bool], str]] = {
    "minimum": (_TYPES["number"], lambda value, bound: value >= bound, "must be at least"),
    "maximum": (_TYPES["number"], lambda value, bound: value <= bound, "must be at most"),
    "exclusiveMinimum": (_TYPES["number"], lambda value, bound: value > bound, "must be above"),
    "exclusiveMaximum": (_TYPES["number"], lambda value, bound: value < bound, "must be below"),
    "minLength": (_TYPES["string"], lambda value, bound: len(value) >= bound, "length at least"),
    "maxLength": (_TYPES["string"], lambda value, bound: len(value) <= bound, "length at most"),
    "minItems": (_TYPES["array"], lambda value, bound: len(value) >= bound, "items at least"),
    "maxItems": (_TYPES["array"], lambda value, bound: len(value) <= bound, "items at most"),
}
_SCHEMA = ("additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_SCHEMA_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMA_MAP = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VISITS_MAX = 4_000
"""Alternatives within alternatives multiply; what is beyond this, about 0.1 s of work, is left to
the client."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def schema_fault(schema: Any, depth: int = 0) -> str | None:
    """Return what makes ``schema`` one that servers of models refuse; None: nothing known."""
    if isinstance(schema, bool) and depth:
        return None
    if not isinstance(schema, dict):
        return f"a schema is {_shown(schema)}, not an object"
    if depth > limits.SCHEMA_DEPTH_MAX:
        return f"schemas are nested deeper than {limits.SCHEMA_DEPTH_MAX} levels"
    return _keyword_fault(schema) or next(
        (fault for inner in _inner(schema) if (fault := schema_fault(inner, depth + 1))), None
    )


def _keyword_fault(schema: dict[str, Any]) -> str | None:
    kinds = schema.get("type", "object")
    for kind in kinds if isinstance(kinds, list) and kinds else [kinds]:
        if not isinstance(kind, str) or kind not in _TYPES:
            return f"there is no type {_shown(kind)}"
    if "array" in kinds and not {"items", "prefixItems"} & set(schema):
        return "an array has no items: servers of models refuse that"
    required = schema.get("required", [])
    if not (isinstance(required, list) and all(isinstance(name, str) for name in required)):
        return f"required is {_shown(required)}, not a list of names"
    for name in ("enum", *_SCHEMA_LIST):
        if name in schema and not (isinstance(schema[name], list) and schema[name]):
            return f"{name} is {_shown(schema[name])}, not a list with an entry"
    for name in _SCHEMA_MAP:
        if not isinstance(schema.get(name, {}), dict):
            return f"{name} is {_shown(schema[name])}, not an object"
    for name in _BOUNDS:
        if not _is_number(schema.get(name, 0)):
            return f"{name} is {_shown(schema[name])}, not a number"
    return None


def _inner(schema: dict[str, Any]) -> Iterator[Any]:
    yield from (schema[name] for name in _SCHEMA if name in schema)
    for name in _SCHEMA_LIST:
        yield from schema.get(name, ())
    for name in _SCHEMA_MAP:
        yield from schema.get(name, {}).values()
    if "items" in schema:
        items = schema["items"]
        yield from items if isinstance(items, list) else (items,)


def argument_problems(value: dict[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with arguments, each problem with its place; empty: nothing found.

    ``schema`` is one without a `schema_fault`.
    """
    return _Checker(schema).problems(value, schema, "", 0)


class _Checker:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._visits = 0

    def problems(self, value: Any, schema: Any, place: str, depth: int) -> list[str]:
        self._visits += 1
        if self._visits > _VISITS_MAX or depth > 2 * limits.SCHEMA_DEPTH_MAX:
            return []
        if isinstance(schema, bool):
            return [] if schema else [f"{_named(place)} must not be there"]
        if (target := self._target(schema)) is not None:
            return self.problems(value, target, place, depth + 1)
        if (wrong := _wrong_value(value, schema)) is not None:
            return [f"{_named(place)} {wrong}, not {_shown(value)}"]
        found = [*self._alternatives(value, schema, place, depth)]
        if isinstance(value, dict):
            found += self._members(value, schema, place, depth)
        elif isinstance(value, list):
            found += self._items(value, schema, place, depth)
        return found

    def _target(self, schema: Mapping[str, Any]) -> Any:
        """Return what a reference names; None for none, or for one that leads elsewhere."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            if step:
                name = step.replace("~1", "/").replace("~0", "~")
                found = found.get(name) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping | bool) else None

    def _alternatives(
        self, value: Any, schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        for part in schema.get("allOf", ()):
            yield from self.problems(value, part, place, depth + 1)
        for name in ("anyOf", "oneOf"):
            parts = schema.get(name)
            if parts and all(self.problems(value, part, place, depth + 1) for part in parts):
                yield f"{_named(place)} is none of the {len(parts)} forms that it can have"

    def _members(
        self, value: dict[str, Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{_named(_below(place, name))} is missing"
        for name, member in value.items():
            if name in known:
                yield from self.problems(member, known[name], _below(place, name), depth + 1)
            elif "patternProperties" not in schema:
                rest = schema.get("additionalProperties", True)
                if rest is False:
                    yield f"there is no argument {_named(_below(place, name))}"
                else:
                    yield from self.problems(member, rest, _below(place, name), depth + 1)

    def _items(
        self, value: list[Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        items = schema.get("items", True)
        first = items if isinstance(items, list) else schema.get("prefixItems", ())
        rest = True if isinstance(items, list) else items
        for number, item in enumerate(value):
            part = first[number] if number < len(first) else rest
            yield from self.problems(item, part, _below(place, str(number)), depth + 1)


def _wrong_value(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return what the value itself should be, whatever is in it."""
    kinds = schema.get("type")
    if kinds is not None:
        names = kinds if isinstance(kinds, list) else [kinds]
        if not any(_TYPES[name](value) for name in names):
            return f"must be {' or '.join(names)}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"must be {_shown(schema['const'])}"
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        return f"must be one of {', '.join(map(_shown, schema['enum'][:_CHOICES_MAX]))}"
    for name, (applies, fits, words) in _BOUNDS.items():
        if name in schema and applies(value) and not fits(value, schema[name]):
            return f"{words} {schema[name]}"
    return None


_CHOICES_MAX = 20


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _named(place: str) -> str:
    return f"`{clean_line(place, limits.VALUE_CHARS_MAX)}`" if place else "the arguments"


def _shown(value: Any) -> str:
    return clean_line(json.dumps(value, default=str), limits.VALUE_CHARS_MAX)
