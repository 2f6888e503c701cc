"""JSON Schema: whether one is fit for a model, and whether values can be held against it.

Schemas come from clients: those of their tools, and those of answers. No reference is ever
fetched. `vaala.services.schema_check` holds values against them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from msgspec import Struct

from vaala.services import limits
from vaala.tools.text import clean_line

_Fits: TypeAlias = Callable[[Any], bool]
_Place: TypeAlias = tuple[str, ...]

TYPES: dict[str, _Fits] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: is_number(value),
    "integer": lambda value: is_number(value) and float(value).is_integer(),
}
BOUNDS: dict[str, tuple[_Fits, Callable[[Any, Any], bool], str]] = {
    "minimum": (TYPES["number"], lambda value, bound: value >= bound, "must be at least"),
    "maximum": (TYPES["number"], lambda value, bound: value <= bound, "must be at most"),
    "exclusiveMinimum": (TYPES["number"], lambda value, bound: value > bound, "must be above"),
    "exclusiveMaximum": (TYPES["number"], lambda value, bound: value < bound, "must be below"),
    "minLength": (TYPES["string"], lambda value, bound: len(value) >= bound, "length at least"),
    "maxLength": (TYPES["string"], lambda value, bound: len(value) <= bound, "length at most"),
    "minItems": (TYPES["array"], lambda value, bound: len(value) >= bound, "items at least"),
    "maxItems": (TYPES["array"], lambda value, bound: len(value) <= bound, "items at most"),
    "minProperties": (TYPES["object"], lambda value, bound: len(value) >= bound, "keys at least"),
    "maxProperties": (TYPES["object"], lambda value, bound: len(value) <= bound, "keys at most"),
}
_SCHEMA = frozenset(
    ("additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
)
_SCHEMA_LIST = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_SCHEMA_MAP = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
_NOT_CHECKED = (
    *("unevaluatedProperties", "unevaluatedItems", "dependencies"),
    *("$dynamicRef", "$recursiveRef"),
)


class Fault(Struct, frozen=True):
    """What is wrong with a schema; ``place`` are the keys that lead to it."""

    place: _Place
    text: str


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def schema_fault(schema: Any) -> str | None:
    """Return what makes the schema of a tool one that servers of models refuse; None: nothing
    known.

    Takes some microseconds for each key in it.
    """
    fault = _first_fault(schema, _array_fault)
    return None if fault is None else fault.text


def fault_of(schema: Any) -> Fault | None:
    """Return why a value cannot be held against all that ``schema`` says; None: it can.

    ``format`` is a note to whoever reads it, as the standard has it.
    """
    return _first_fault(schema, lambda part: _unchecked(part, schema))


def target_of(reference: Any, root: Any) -> Any:
    """Return the schema that a reference names; None for none, or for one that leads elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping | bool) else None


def matcher(pattern: str) -> Callable[[str], bool] | None:
    """Return what looks for a pattern in a text, in time linear to it; None: it has parts that
    need more, such as look-around, or is no pattern.

    The engine is Rust's, within pydantic: an expression from elsewhere must not take for ever.
    """
    # Its errors are its own, of more than one kind, and none of them is a bug here.
    from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None

    def found(text: str) -> bool:
        try:
            validator.validate_python(text)
        except ValidationError:
            return False
        return True

    return found


def shown(value: Any) -> str:
    """Return a value for a message; what is large is cut, or counted, before it is written out."""
    if isinstance(value, str):
        value = value[: limits.VALUE_CHARS_MAX + 1]
    elif isinstance(value, list) and (len(value) > CHOICES_SHOWN_MAX or not _are_small(value)):
        return f"a list of {len(value)}"
    elif isinstance(value, dict) and (
        len(value) > CHOICES_SHOWN_MAX or not _are_small((*value, *value.values()))
    ):
        return f"an object of {len(value)}"
    return clean_line(json.dumps(value, default=str), limits.VALUE_CHARS_MAX)


CHOICES_SHOWN_MAX = 20


def _are_small(parts: Iterable[Any]) -> bool:
    return not any(
        isinstance(part, list | dict)
        or (isinstance(part, str) and len(part) > limits.VALUE_CHARS_MAX)
        for part in parts
    )


def _first_fault(
    schema: Any, own: Callable[[dict[str, Any]], tuple[_Place, str] | None]
) -> Fault | None:
    """Return the first fault that every schema may have, or that ``own`` finds in a part."""
    waiting: list[tuple[Any, _Place, int]] = [(schema, (), 0)]
    while waiting:
        part, place, depth = waiting.pop()
        if isinstance(part, bool) and depth:
            continue
        if not isinstance(part, dict):
            return Fault(place, f"a schema is {shown(part)}, not an object")
        if depth > limits.SCHEMA_DEPTH_MAX:
            return Fault(place, f"schemas are nested deeper than {limits.SCHEMA_DEPTH_MAX} levels")
        for name, value in part.items():
            if (text := _keyword_fault(name, value)) is not None:
                return Fault((*place, name), text)
            waiting += [
                (inner, (*place, name, *key), depth + 1) for key, inner in _inner(name, value)
            ]
        if (found := own(part)) is not None:
            return Fault((*place, *found[0]), found[1])
    return None


def _array_fault(part: dict[str, Any]) -> tuple[_Place, str] | None:
    if "array" in part.get("type", ()) and not ("items" in part or "prefixItems" in part):
        return (), "an array has no items: servers of models refuse that"
    return None


def _unchecked(part: dict[str, Any], root: Any) -> tuple[_Place, str] | None:
    """Return what of a part no check could hold a value against."""
    for name in _NOT_CHECKED:
        if name in part:
            return (name,), "this keyword is not supported: write it in other words"
    if "$ref" in part and target_of(part["$ref"], root) is None:
        return ("$ref",), f"{shown(part['$ref'])} leads to no schema in this document"
    patterns = part.get("patternProperties", {})
    for place, pattern in (
        *((("pattern",), part[name]) for name in ("pattern",) if name in part),
        *((("patternProperties", name), name) for name in patterns),
    ):
        if not isinstance(pattern, str) or matcher(pattern) is None:
            return place, f"{shown(pattern)} is no pattern that can be checked, without look-around"
    for name, what, fits in _FORMS:
        if name in part and not fits(part[name]):
            return (name,), f"{shown(part[name])} is not {what}"
    return None


def _are_name_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(names, list) and all(isinstance(one, str) for one in names)
        for names in cast("dict[str, Any]", value).values()
    )


_FORMS: tuple[tuple[str, str, _Fits], ...] = (
    ("multipleOf", "a number above 0", lambda value: is_number(value) and value > 0),
    ("uniqueItems", "true or false", TYPES["boolean"]),
    ("minContains", "a number", is_number),
    ("maxContains", "a number", is_number),
    ("dependentRequired", "an object of lists of names", _are_name_lists),
)


def _keyword_fault(name: str, value: Any) -> str | None:
    if name == "type":
        for kind in value if isinstance(value, list) and value else [value]:
            if not isinstance(kind, str) or kind not in TYPES:
                return f"there is no type {shown(kind)}"
    elif name == "required":
        if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            return f"required is {shown(value)}, not a list of names"
    elif name == "enum" or name in _SCHEMA_LIST:
        if not (isinstance(value, list) and value):
            return f"{name} is {shown(value)}, not a list with an entry"
    elif name in _SCHEMA_MAP:
        if not isinstance(value, dict):
            return f"{name} is {shown(value)}, not an object"
    elif name in BOUNDS and not is_number(value):
        return f"{name} is {shown(value)}, not a number"
    return None


def _inner(name: str, value: Any) -> Iterator[tuple[_Place, Any]]:
    """Yield the schemas in the value of a keyword without a fault, with what leads to each."""
    if name in _SCHEMA:
        yield (), value
    elif name in _SCHEMA_LIST or (name == "items" and isinstance(value, list)):
        yield from (((str(number),), one) for number, one in enumerate(cast("list[Any]", value)))
    elif name in _SCHEMA_MAP:
        yield from (((key,), one) for key, one in cast("dict[str, Any]", value).items())
    elif name == "items":
        yield (), value
