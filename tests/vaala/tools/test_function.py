"""Tools from plain async functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
import trio
from pydantic import BaseModel, Field

from tests.vaala.tools.calling import Caller
from tests.vaala.tools.scripted import ScriptedWorkspace
from vaala.tools.base import Tool, ToolContext, ToolFailure, ToolResult
from vaala.tools.function import tool
from vaala.tools.registry import ToolSet
from vaala_protocol.content import TextContent


class Point(BaseModel):
    x: int
    y: int = 0


async def draw(
    points: list[Point],
    colour: Literal["red", "blue"] = "red",
    width: Annotated[int, Field(description="In pixels", ge=1)] = 1,
    json: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Draw a line through points.

    Args:
        points: at least one
    """
    return {"points": [[point.x, point.y] for point in points], "colour": colour, "width": width}


def caller_of(nursery: trio.Nursery, *tools: Tool) -> Caller:
    return Caller(ScriptedWorkspace(), nursery, ToolSet(tools))


def test_the_spec_comes_from_hints_and_docstring() -> None:
    spec = tool(draw).spec
    assert spec.name == "draw"
    assert spec.description == "Draw a line through points.\n\nArgs:\n    points: at least one"
    assert list(spec.parameters["properties"]) == ["points", "colour", "width", "json"]
    assert spec.parameters["required"] == ["points"]
    assert spec.parameters["additionalProperties"] is False
    assert spec.parameters["properties"]["width"] == {
        "default": 1, "description": "In pixels", "minimum": 1, "type": "integer",
    }  # fmt: skip
    assert spec.parameters["properties"]["colour"]["enum"] == ["red", "blue"]
    assert "title" not in str(spec.parameters)


async def test_arguments_become_parameters(nursery: trio.Nursery) -> None:
    caller = caller_of(nursery, tool(draw))
    text = await caller.text("draw", points=[{"x": "1"}, {"x": 2, "y": 3}], colour="blue")  # A6-4
    assert text == '{"points":[[1,0],[2,3]],"colour":"blue","width":1}'
    text = await caller.failure("draw", points=[{"x": "one", "z": 1}], width=0, color="red")
    assert "`points.0.x` should be a valid integer" in text
    assert "`width` should be greater than or equal to 1" in text
    assert "no argument `color` (did you mean colour?)" in text


@dataclass
class Row:
    name: str
    size: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (7, "7"),
        (["a", 1], '["a",1]'),
        ([], "[]"),
        (Row("n", 1), '{"name":"n","size":1}'),
        (Point(x=1), '{"x":1,"y":0}'),
        (TextContent(text="block"), "block"),
        ([TextContent(text="a"), TextContent(text="b")], "a\nb"),
        (ToolResult((TextContent(text="r"),)), "r"),
    ],
)
async def test_what_it_may_return(nursery: trio.Nursery, value: object, text: str) -> None:
    async def give() -> object:
        """Give it."""
        return value

    assert await caller_of(nursery, tool(give)).text("give") == text


async def test_what_is_no_result(nursery: trio.Nursery) -> None:
    async def give() -> object:
        """Give it."""
        return object()

    assert "returned a object that is no JSON" in await caller_of(nursery, tool(give)).failure(
        "give"
    )


async def test_the_context_is_given_and_not_asked_for(nursery: trio.Nursery) -> None:
    async def where(name: str, context: ToolContext) -> str:
        """Say where."""
        return f"{name} in {context.workspace.directory}"

    made = tool(where, access="read")
    assert list(made.spec.parameters["properties"]) == ["name"]
    caller = caller_of(nursery, made)
    assert await caller.text("where", name="x") == "x in /w"
    call = await caller.prepare("where", name="x")
    assert call.access.kind == "read"
    assert call.title == 'where {"name": "x"}'


async def test_what_it_raises(nursery: trio.Nursery) -> None:
    async def fails(meant: bool) -> None:
        """Fail."""
        raise ToolFailure("not there") if meant else LookupError("oops")

    caller = caller_of(nursery, tool(fails))
    assert await caller.failure("fails", meant=True) == "not there"
    assert await caller.failure("fails", meant=False) == "fails failed with LookupError: oops"


def sync() -> str:
    """Not async."""
    return ""


async def untyped(x) -> None:  # type: ignore[no-untyped-def]  # what is tested
    """Has no hint."""


async def variadic(*values: int) -> None:
    """Takes any number."""


async def undescribed() -> None: ...


async def strange(value: trio.Event) -> None:
    """Takes what no model can send."""


async def unreadable(value: str) -> None:
    """Has a hint that only a checker could know."""


unreadable.__annotations__["value"] = "ForCheckersAlone"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (sync, "trio.to_thread.run_sync"),
        (untyped, "'x' has no type hint"),
        (variadic, "'values' cannot be given by name"),
        (undescribed, "no description"),
        (strange, "cannot be arguments"),
        (unreadable, "type hint cannot be read"),
    ],
)
def test_what_cannot_be_a_tool(function: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said) as caught:
        tool(function)
    assert function.__name__ in str(caught.value)


def test_name_and_description_can_be_given() -> None:
    spec = tool(undescribed, name="other", description="  Does it.\n").spec
    assert (spec.name, spec.description) == ("other", "Does it.")
