"""The arguments of a call: strict JSON, then a check against the tool's model.

Nothing is guessed. The only conversions are those that lose nothing: a string that holds the JSON
of the number, boolean, list or object that is wanted, and a whole number written as 20.0.
Pydantic is imported when a call is no good, or for a function tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from vaala.tools import limits
from vaala.tools.base import ToolFailure
from vaala.tools.explain import explain, schema_text
from vaala.tools.schema import ToolArguments, arguments_of, schema_of
from vaala.tools.strict_json import NotStrict, parse_object, parse_value

if TYPE_CHECKING:
    from pydantic import BaseModel

A = TypeVar("A", bound=ToolArguments)
_WORDS = {"True": "true", "False": "false", "None": "null"}
"""Python's spellings, which models write into strings."""


class Arguments(Generic[A]):
    """The arguments of one built-in tool: their schema, and the check that makes them."""

    def __init__(self, kind: type[A]) -> None:
        self.schema = schema_of(kind)
        self._kind = kind
        self._model: type[BaseModel] | None = None

    def read(self, tool: str, text: str) -> A:
        """Return the arguments of a call; raises `ToolFailure` that names every problem."""
        value = _parse(tool, text, self.schema)
        try:
            return msgspec.convert(value, self._kind)
        except msgspec.ValidationError:
            pass  # pydantic names every problem at once, and says what can be converted
        if self._model is None:
            self._model = _model_of(self._kind)
        values = _check(tool, value, self._model, self.schema)
        return self._kind(**{name: getattr(values, name) for name in type(values).model_fields})


def _model_of(kind: type[ToolArguments]) -> type[BaseModel]:
    from pydantic import ConfigDict, Field, create_model

    members: dict[str, Any] = {}
    for argument in arguments_of(kind):
        bounds = Field(
            default=... if argument.required else argument.default,
            ge=argument.meta.ge,
            le=argument.meta.le,
            max_length=argument.meta.max_length,
        )
        members[argument.name] = (argument.annotation, bounds)
    return create_model(kind.__name__, __config__=ConfigDict(extra="forbid"), **members)


def explain_cut(tool: str, arguments: str) -> ToolFailure:
    """Return the result of a call during which the answer reached the output-token limit.

    Such a call never runs, even when its arguments can be read: a provider may have closed the
    brackets of half an object.
    """
    return ToolFailure(
        f"{tool} was not run: the answer reached the output-token limit within this call (after "
        f"{len(arguments):,} characters of arguments), so they may not be complete. Call it again "
        "with shorter arguments, for instance a long file in several parts."
    )


def check(tool: str, text: str, model: type[BaseModel], schema: Mapping[str, Any]) -> BaseModel:
    """Return the arguments as an instance of ``model``.

    Raises `ToolFailure` with one short text that names every problem and what is expected.
    """
    return _check(tool, _parse(tool, text, schema), model, schema)


def _parse(tool: str, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return parse_object(text)
    except NotStrict as error:
        raise ToolFailure(
            f"{tool} was not run: its arguments cannot be read, {error}. "
            f"Expected: {schema_text(schema)}"
        ) from error


def _check(
    tool: str, value: dict[str, Any], model: type[BaseModel], schema: Mapping[str, Any]
) -> BaseModel:
    from pydantic import ValidationError

    problems: Sequence[Mapping[str, Any]] = ()
    for _ in range(limits.ARGUMENTS_DEPTH_MAX):
        try:
            return model.model_validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)
        if not _convert(value, problems):
            break
    raise ToolFailure(explain(tool, problems, schema))


def _convert(value: dict[str, Any], problems: Sequence[Mapping[str, Any]]) -> bool:
    """Convert in place what can be converted without loss; tell whether there was anything."""
    changed = False
    for problem in problems:
        if not problem["type"].endswith("_type"):
            continue
        holder, key = _holder(value, problem["loc"])
        if holder is None:
            continue
        old = holder[key]
        new = _lossless(old, problem["type"])
        if new is not old:
            holder[key] = new
            changed = True
    return changed


def _holder(value: Any, place: Sequence[str | int]) -> tuple[Any, Any]:
    """Return the container and key of a place; None for one that names a branch of a union."""
    holder = value
    for step in place[:-1]:
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            return None, None
    try:
        holder[place[-1]]
    except (KeyError, IndexError, TypeError):
        return None, None
    return (holder, place[-1]) if isinstance(holder, dict | list) else (None, None)


def _lossless(old: Any, problem: str) -> Any:
    if isinstance(old, float) and problem == "int_type" and old.is_integer():
        return int(old)
    if not isinstance(old, str) or problem == "string_type":
        return old
    try:
        new = parse_value(_WORDS.get(old.strip(), old))
    except NotStrict:
        return old
    return old if isinstance(new, str) else new
