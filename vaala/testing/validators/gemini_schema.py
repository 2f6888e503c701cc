"""Gemini's own schema of parameters and answers: a part of OpenAPI 3.0, not JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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
from vaala.testing.validators.values import is_flag, is_text

_TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}
_ONLY_FOR = {"properties": "OBJECT", "required": "OBJECT", "items": "ARRAY"}


def check_schema(value: object, path: str, report: Report) -> None:
    """Check a schema and those inside it. The nesting is bounded already."""
    pending: list[tuple[object, str]] = [(value, path)]
    while pending:
        node, node_path = pending.pop()
        schema = fields_of(node, _FITS.keys(), node_path, report, rules.SCHEMA_UNKNOWN)
        if schema is None:
            continue
        for key, fits in _FITS.items():
            if key in schema and not fits(schema[key]):
                message = f"{show(schema[key])} does not fit"
                report.add(rules.SCHEMA_VALUE, child(node_path, key), message)
        _check_type(schema, node_path, report)
        pending.extend(_inner(schema, node_path))


def schema_type(value: object) -> str | None:
    """The type that a schema names, in capitals; the API takes both."""
    kind = (as_object(value) or {}).get("type")
    return kind.upper() if isinstance(kind, str) else None


def _inner(schema: JsonObject, path: str) -> Iterator[tuple[object, str]]:
    for name, inner in (as_object(schema.get("properties")) or {}).items():
        yield inner, child(path, "properties", name)
    for index, inner in enumerate(as_array(schema.get("anyOf")) or ()):
        yield inner, child(path, "anyOf", index)
    if "items" in schema:
        yield schema["items"], child(path, "items")


def _check_type(schema: JsonObject, path: str, report: Report) -> None:
    kind = schema_type(schema)
    if "type" in schema and kind not in _TYPES:
        message = f"{show(schema['type'])} is none of {', '.join(_TYPES)}"
        report.add(rules.SCHEMA_TYPE, child(path, "type"), message)
        return
    if kind is None and "anyOf" not in schema:
        report.add(rules.SCHEMA_TYPE, path, "no type is specified")
        return
    for key, needed in _ONLY_FOR.items():
        if key in schema and kind != needed:
            message = f"only allowed for {needed} type"
            report.add(rules.SCHEMA_TYPE, child(path, key), message)
    if kind == "ARRAY" and "items" not in schema:
        report.add(rules.SCHEMA_ITEMS, child(path, "items"), "missing field")
    if "enum" in schema and kind != "STRING":
        report.add(rules.SCHEMA_ENUM, child(path, "enum"), "only allowed for STRING type")
    if "format" in schema and schema["format"] not in _FORMATS.get(kind or "", ()):
        message = f"{show(schema['format'])} is not supported for {kind} type"
        report.add(rules.SCHEMA_VALUE, child(path, "format"), message)
    _check_required(schema, path, report)


def _check_required(schema: JsonObject, path: str, report: Report) -> None:
    properties = as_object(schema.get("properties")) or {}
    for index, name in enumerate(as_array(schema.get("required")) or ()):
        if not isinstance(name, str) or name not in properties:
            message = f"property {show(name)} is not defined"
            report.add(rules.SCHEMA_REQUIRED, child(path, "required", index), message)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    # Numbers of 64 bits may stand in a string.
    if isinstance(value, str):
        return value.isdecimal()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: object) -> bool:
    names = as_array(value)
    return names is not None and all(isinstance(name, str) for name in names)


def _are_choices(value: object) -> bool:
    choices = as_array(value)
    return bool(choices) and all(is_text(choice) for choice in choices or ())


def _anything(value: object) -> bool:
    return True


_FITS: Mapping[str, Callable[[object], bool]] = {
    "type": _anything,
    **dict.fromkeys(("title", "description", "format", "pattern"), _is_string),
    "nullable": is_flag,
    "enum": _are_choices,
    "properties": lambda value: as_object(value) is not None,
    **dict.fromkeys(("required", "propertyOrdering"), _are_names),
    "items": lambda value: as_object(value) is not None,
    "anyOf": lambda value: bool(as_array(value)),
    **dict.fromkeys(
        ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"),
        _is_count,
    ),
    **dict.fromkeys(("minimum", "maximum"), _is_number),
    **dict.fromkeys(("default", "example"), _anything),
}
