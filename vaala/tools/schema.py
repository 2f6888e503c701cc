"""Arguments of a built-in tool, declared as a frozen dataclass, and the JSON Schema of them.

The schema of a tool goes into every request, also of a run that calls no tool, so it is made from
the annotations alone: pydantic is not imported for it. `vaala.tools.arguments` makes the model
that checks a call from the same declaration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_TYPES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class Arg:
    """What `Annotated` tells of an argument: its description for the model, and its bounds."""

    description: str = ""
    minimum: float | None = None
    maximum: float | None = None
    chars_max: int | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    annotation: Any
    """The type without `Annotated`."""
    arg: Arg
    default: Any
    """`dataclasses.MISSING` when the argument is required."""

    @property
    def required(self) -> bool:
        return self.default is MISSING


def arguments_of(kind: type[Any]) -> Iterator[Argument]:
    """Yield the arguments that a dataclass declares, in order."""
    hints = get_type_hints(kind, include_extras=True)
    declared: tuple[Field[Any], ...] = fields(kind)
    for item in declared:
        hint, arg = hints[item.name], Arg()
        if get_origin(hint) is Annotated:
            hint, *marks = get_args(hint)
            arg = next((mark for mark in marks if isinstance(mark, Arg)), arg)
        yield Argument(item.name, hint, arg, item.default)


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass of strings, numbers, booleans and literals."""
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
    else:
        shape = {"type": _TYPES[kind]}
    if argument.arg.description:
        shape["description"] = argument.arg.description
    return shape
