"""JSON Schema of tools from elsewhere: whether one is fit to be sent, and arguments against it.

Checked are types, enumerations, properties, items, bounds, alternatives and references within the
schema. What is left to whoever runs the tool: patterns, since an expression from elsewhere may
take for ever, conditions and formats. No reference is ever fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

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
_SCHEMA = frozenset(
    ("additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
)
_SCHEMA_LIST = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_SCHEMA_MAP = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
_VISITS_MAX = 4_000
"""Alternatives within alternatives multiply; what is beyond this, about 0.1 s of work, is left to
the client."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def schema_fault(schema: Any) -> str | None:
    """Return what makes ``schema`` one that servers of models refuse; None: nothing known.

    Takes some microseconds for each key in it.
    """
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, bool) and depth:
            continue
        if not isinstance(part, dict):
            return f"a schema is {_shown(part)}, not an object"
        if depth > limits.SCHEMA_DEPTH_MAX:
            return f"schemas are nested deeper than {limits.SCHEMA_DEPTH_MAX} levels"
        for name, value in part.items():
            if (fault := _keyword_fault(name, value)) is not None:
                return fault
            waiting += [(inner, depth + 1) for inner in _inner(name, value)]
        if "array" in part.get("type", ()) and not ("items" in part or "prefixItems" in part):
            return "an array has no items: servers of models refuse that"
    return None


def _keyword_fault(name: str, value: Any) -> str | None:
    if name == "type":
        for kind in value if isinstance(value, list) and value else [value]:
            if not isinstance(kind, str) or kind not in _TYPES:
                return f"there is no type {_shown(kind)}"
    elif name == "required":
        if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            return f"required is {_shown(value)}, not a list of names"
    elif name == "enum" or name in _SCHEMA_LIST:
        if not (isinstance(value, list) and value):
            return f"{name} is {_shown(value)}, not a list with an entry"
    elif name in _SCHEMA_MAP:
        if not isinstance(value, dict):
            return f"{name} is {_shown(value)}, not an object"
    elif name in _BOUNDS and not _is_number(value):
        return f"{name} is {_shown(value)}, not a number"
    return None


def _inner(name: str, value: Any) -> Iterable[Any]:
    """Return the schemas in the value of a keyword without a fault."""
    if name in _SCHEMA:
        return (value,)
    if name in _SCHEMA_LIST:
        return cast("list[Any]", value)
    if name in _SCHEMA_MAP:
        return cast("dict[str, Any]", value).values()
    if name == "items":
        return value if isinstance(value, list) else (value,)
    return ()


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
    """Return a value for a message; what is large is cut, or counted, before it is written out."""
    if isinstance(value, str):
        value = value[: limits.VALUE_CHARS_MAX + 1]
    elif isinstance(value, list) and (len(value) > _CHOICES_MAX or not _are_small(value)):
        return f"a list of {len(value)}"
    elif isinstance(value, dict) and (
        len(value) > _CHOICES_MAX or not _are_small((*value, *value.values()))
    ):
        return f"an object of {len(value)}"
    return clean_line(json.dumps(value, default=str), limits.VALUE_CHARS_MAX)


def _are_small(parts: Iterable[Any]) -> bool:
    return not any(
        isinstance(part, list | dict)
        or (isinstance(part, str) and len(part) > limits.VALUE_CHARS_MAX)
        for part in parts
    )
