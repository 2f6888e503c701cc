"""The types of the wire as one JSON Schema (draft 2020-12), with the tables of methods."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable
from typing import Any, Literal, get_args

from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.methods.runtime import PROTOCOL_VERSION
from vaala_protocol.schema.shapes import (
    Alias,
    Annotation,
    Field,
    Shape,
    aliases,
    is_union,
    members,
    method_doc,
    origin_of,
    shapes,
)


def schema() -> dict[str, Any]:
    """Return ``vaala.schema.json`` as builtins; the types are in its ``$defs``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"The protocol of vaala, version {PROTOCOL_VERSION}",
        "protocol": PROTOCOL_VERSION,
        "methods": _methods(REQUESTS),
        "clientMethods": _methods(CLIENT_REQUESTS),
        "notifications": {
            kind.method: {"description": method_doc(kind), "params": _reference(kind.__name__)}
            for kind in NOTIFICATIONS
        },
        "$defs": {
            shape.name: _alias(shape) if isinstance(shape, Alias) else _shape(shape)
            for shape in shapes()
        },
    }


def _methods(kinds: Iterable[Any]) -> dict[str, Any]:
    return {
        kind.method: {
            "description": method_doc(kind),
            "params": _reference(kind.__name__),
            "result": _reference(kind.result.__name__),
        }
        for kind in kinds
    }


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _shape(shape: Shape) -> dict[str, Any]:
    properties = {field.name: _field(field) for field in shape.fields}
    required = [field.name for field in shape.fields if field.required]
    if shape.tag_field is not None:
        properties = {shape.tag_field: {"const": shape.tag}, **properties}
        required = [shape.tag_field, *required]
    described = {"description": shape.doc} if shape.doc else {}
    return {**described, "type": "object", "properties": properties, "required": required}


def _field(field: Field) -> dict[str, Any]:
    made = _type(field.type)
    if field.doc:
        made["description"] = field.doc
    if not field.required:
        made["default"] = field.default
    return made


def _alias(alias: Alias) -> dict[str, Any]:
    if origin_of(alias.type) is Literal:
        return {"enum": list(get_args(alias.type))}
    return {"anyOf": [_type(member) for member in members(alias.type)]}


def _type(annotation: Annotation) -> dict[str, Any]:
    if annotation in aliases():
        return _reference(aliases()[annotation])
    if is_union(annotation):
        return {"anyOf": [_type(member) for member in members(annotation)]}
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, arguments = origin_of(annotation), get_args(annotation)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1])}
    if not inspect.isclass(annotation):
        raise TypeError(f"{annotation} has no JSON Schema: add it here")
    return _reference(annotation.__name__)


_PLAIN: dict[Annotation, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    types.NoneType: {"type": "null"},
}
