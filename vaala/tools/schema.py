"""Arguments of a built-in tool, declared as a struct, and the JSON Schema of them.

The schema of a tool goes into every request, also of a run that calls no tool, so it is made from
the declaration alone: pydantic is not imported for it. `vaala.tools.arguments` checks a call
against the same declaration. A field's `Annotated` holds a `msgspec.Meta` with its description for
the model and its bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

_TYPES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class ToolArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The base of declarations; an argument that is not declared is a problem."""


class Argument(Struct, frozen=True):
    name: str
    annotation: Any
    """The type without `Annotated`."""
    meta: Meta
    default: Any
    """`msgspec.NODEFAULT` when the argument is required."""

    @property
    def required(self) -> bool:
        return self.default is NODEFAULT


def arguments_of(kind: type[ToolArguments]) -> Iterator[Argument]:
    """Yield the arguments that a struct declares, in order."""
    plain = get_type_hints(kind)
    marked = get_type_hints(kind, include_extras=True)
    for item in fields(kind):
        meta = next(_metas(marked[item.name]), Meta())
        yield Argument(item.name, plain[item.name], meta, item.default)


def _metas(hint: Any) -> Iterator[Meta]:
    """Yield what `Annotated` holds, of the type itself or of a part of a union."""
    if get_origin(hint) is Annotated:
        yield from (mark for mark in hint.__metadata__ if isinstance(mark, Meta))
    elif get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _metas(part)


def schema_of(kind: type[ToolArguments]) -> dict[str, Any]:
    """Return the JSON Schema of a struct of strings, numbers, booleans, literals, and lists of
    strings."""
    arguments = list(arguments_of(kind))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument.name: _property(argument) for argument in arguments},
    }
    if required := [argument.name for argument in arguments if argument.required]:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def _property(argument: Argument) -> dict[str, Any]:
    kind = argument.annotation
    if get_origin(kind) in (Union, UnionType):
        # An optional argument is one that may be left out; null is accepted and not advertised.
        (kind,) = [part for part in get_args(kind) if part is not NoneType]
    shape: dict[str, Any]
    if get_origin(kind) is Literal:
        shape = {"type": "string", "enum": list(get_args(kind))}
    elif get_origin(kind) is list:
        shape = {"type": "array", "items": {"type": _TYPES[get_args(kind)[0]]}}
    else:
        shape = {"type": _TYPES[kind]}
    if argument.meta.description:
        shape["description"] = argument.meta.description
    return shape
