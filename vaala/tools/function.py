"""Tools from plain async functions: type hints are the parameters, the docstring describes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

from msgspec import Struct

from vaala.models.base import ToolSpec
from vaala.permissions.base import Access, AccessKind
from vaala.tools.arguments import check
from vaala.tools.base import PreparedCall, Tool, ToolContext, ToolFailure, ToolResult
from vaala.tools.text import clean_line
from vaala_executors.workspace import Workspace
from vaala_protocol.calls import OtherDetails
from vaala_protocol.content import FileContent, ImageContent, TextContent

if TYPE_CHECKING:
    from pydantic import BaseModel

_BLOCKS = (TextContent, ImageContent, FileContent)
_FIELD = "argument_"
_BLANK_LINES = re.compile(r"\n{3,}")


def tool(
    function: Callable[..., Awaitable[object]],
    *,
    access: AccessKind = "none",
    name: str | None = None,
    description: str | None = None,
) -> Tool:
    """Make a tool of an async function.

    Its parameters, read with pydantic (defaults, `Literal`, lists, nested models, `Field` in
    `Annotated`), are the arguments; one annotated `ToolContext` gets the context of the call. It
    returns text, content blocks, a `ToolResult`, or anything that pydantic can turn into JSON;
    None is an empty result. What the model should be told of a failure it raises as
    `ToolFailure`. ``access`` says what the gate decides on: leave it at ``none`` only for what
    touches nothing.

    Raises `TypeError` for what cannot be such a function, with the way out.
    """
    label = name if name is not None else str(getattr(function, "__name__", "tool"))
    if not inspect.iscoroutinefunction(function):
        raise TypeError(
            f"{label} is not an async function: define it with async def, and call what blocks "
            "in it with trio.to_thread.run_sync"
        )
    parameters = _read_parameters(label, function)
    text = inspect.cleandoc(description or function.__doc__ or "")
    if not text:
        raise TypeError(f"{label} has no description: give it a docstring, or description=")
    spec = ToolSpec(label, _BLANK_LINES.sub("\n\n", text), _schema(parameters.model))
    return FunctionTool(function, spec, parameters, access)


class Parameters(Struct, frozen=True):
    model: type[BaseModel]
    context: str | None
    """The name of the parameter that gets the `ToolContext`."""


class FunctionTool(Tool):
    """Made by `tool`."""

    def __init__(
        self,
        function: Callable[..., Awaitable[object]],
        spec: ToolSpec,
        parameters: Parameters,
        access: AccessKind,
    ) -> None:
        self._function = function
        self._spec = spec
        self._parameters = parameters
        self._access: AccessKind = access

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def prepare(self, arguments: str, workspace: Workspace) -> PreparedCall:
        model, schema = self._parameters.model, self._spec.parameters
        values = check(self._spec.name, arguments, model, schema)
        shown = clean_line(arguments if arguments.strip() not in ("", "{}") else "", 80)
        title = f"{self._spec.name} {shown}".rstrip()
        return PreparedCall(
            details=OtherDetails(title=title),
            title=title,
            access=Access(self._access),
            run=partial(self._run, values),
        )

    async def _run(self, values: BaseModel, context: ToolContext) -> ToolResult:
        given = {
            field.removeprefix(_FIELD): getattr(values, field)
            for field in type(values).model_fields
        }
        if self._parameters.context is not None:
            given[self._parameters.context] = context
        return _result(self._spec.name, await self._function(**given))


def _read_parameters(label: str, function: Callable[..., Any]) -> Parameters:
    from pydantic import ConfigDict, Field, PydanticUserError, create_model

    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:  # a type that is imported for checkers alone, or is local
        raise TypeError(f"{label}: a type hint cannot be read: {error}") from error
    members: dict[str, Any] = {}
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{label}: parameter {parameter.name!r} cannot be given by name")
        if parameter.name not in hints:
            raise TypeError(f"{label}: parameter {parameter.name!r} has no type hint")
        if hints[parameter.name] is ToolContext:
            context = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        # The field has a name of its own: json, copy and others would hide parts of the model.
        field = Field(default=default, alias=parameter.name)
        members[f"{_FIELD}{parameter.name}"] = (hints[parameter.name], field)
    try:
        model = create_model(label, __config__=ConfigDict(extra="forbid"), **members)
    except (PydanticUserError, NameError) as error:
        raise TypeError(f"{label}: its parameters cannot be arguments: {error}") from error
    return Parameters(model, context)


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's JSON Schema without the titles that pydantic makes from names."""
    schema: dict[str, Any] = _untitled(model.model_json_schema())
    schema.pop("description", None)
    return schema


def _untitled(node: Any) -> Any:
    if isinstance(node, list):
        return [_untitled(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _untitled(part) for name, part in value.items()}
        elif key in ("default", "enum", "const", "examples"):
            kept[key] = value
        elif key != "title" or not isinstance(value, str):
            kept[key] = _untitled(value)
    return kept


def _result(name: str, value: object) -> ToolResult:
    match value:
        case ToolResult():
            return value
        case None:
            return ToolResult(())
        case str():
            return ToolResult((TextContent(text=value),))
        case TextContent() | ImageContent() | FileContent():
            return ToolResult((value,))
        case list() | tuple() if value and all(isinstance(block, _BLOCKS) for block in value):
            return ToolResult(tuple(value))
        case _:
            return ToolResult((TextContent(text=_json(name, value)),))


def _json(name: str, value: object) -> str:
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(value, indent=None).decode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise ToolFailure(
            f"{name} ran, but returned a {type(value).__name__} that is no JSON: {error}"
        ) from error
