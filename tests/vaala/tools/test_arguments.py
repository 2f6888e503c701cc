"""Arguments: strict JSON, lossless conversion, one error that names every problem."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from pydantic import BaseModel, ConfigDict

from vaala.tools import limits
from vaala.tools.arguments import Arguments, check, explain_cut
from vaala.tools.base import ToolFailure
from vaala.tools.explain import schema_text
from vaala.tools.schema import ToolArguments
from vaala.tools.strict_json import NotStrict, parse_object


class Listing(ToolArguments, frozen=True):
    path: Annotated[str, Meta(description="where")]
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    recursive: bool = False
    depth: int | None = None
    order: Literal["name", "size"] = "name"


LISTING = Arguments(Listing)


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    old: str
    new: str


class Edits(BaseModel):
    model_config = ConfigDict(extra="forbid")
    edits: list[Edit]
    main: Edit | None = None


def failure(text: str) -> str:
    with pytest.raises(ToolFailure) as caught:
        LISTING.read("list", text)
    return str(caught.value)


def test_good_arguments() -> None:
    read = LISTING.read("list", ' {"path": "a", "limit": 3, "order": "size"}\n')
    assert read == Listing("a", 3, order="size")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"path": "a",}', "not valid JSON"),  # A2-4
        ("{'path': 'a'}", "not valid JSON"),
        ('{"path": None}', "not valid JSON"),
        ('{"path": "a"} {"path": "b"}', "Extra data"),
        ('{"path": "a"', "not complete JSON"),  # A2-1
        ('{"path": "a', "output limit"),
        ('{"path":', "not complete JSON"),
        ('{"path": "a", "path": "/etc/passwd"}', "`path` stands in them twice"),  # A2-5
        ('{"path": "a", "limit": NaN}', "NaN"),
        ('{"path": "a", "limit": -Infinity}', "-Infinity"),
        ('{"path": "a", "limit": 1e999}', "too large"),
        ('{"path": "a", "limit": ' + "9" * 5000 + "}", "too long"),
        ("[" * 50_000, "nested deeper"),
        ("[" * 50_000 + "]" * 50_000, "nested deeper"),
        ('{"path":' * 50_000, "nested deeper"),
        ('{"path":' + "[" * 70 + "]" * 70 + "}", "nested deeper"),
        ('{"path": "\\ud83d"}', "lone surrogate"),
        ('{"\\ud83d": 1}', "lone surrogate"),
        ("null", "not null"),
        ('"path"', "not a string"),
        ("[1]", "not a list"),
        ("7", "not a number"),
        ("true", "not a boolean"),
    ],
)
def test_only_a_strict_object_passes(text: str, part: str) -> None:
    assert part in failure(text)


def test_arguments_that_are_too_large() -> None:
    big = json.dumps({"path": "ä" * (limits.ARGUMENTS_BYTES_MAX // 2)}, ensure_ascii=False)
    assert "larger than 1,048,576 bytes" in failure(big)


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_missing_fields_are_named(text: str) -> None:  # A2-3
    assert "`path` is missing" in failure(text)
    assert "Expected: {path: string, limit?: integer" in failure(text)


def test_lossless_conversion() -> None:  # A6-2
    read = LISTING.read(
        "list", '{"path": "20", "limit": "20", "recursive": "true", "depth": "null"}'
    )
    assert read == Listing("20", 20, recursive=True, depth=None)
    assert LISTING.read("list", '{"path": "a", "limit": 20.0, "recursive": "False"}').limit == 20


@pytest.mark.parametrize(
    "value", ['"20.5"', "20.5", "true", '"many"', '"1_0"', "[20]", '"0x10"', '"NaN"']
)
def test_nothing_is_guessed(value: str) -> None:
    assert "`limit`" in failure(f'{{"path": "a", "limit": {value}}}')


def test_a_number_is_no_string() -> None:
    assert "`path` should be a valid string, not 20" in failure('{"path": 20}')


def test_nested_object_as_a_string() -> None:  # A6-4
    text = json.dumps(
        {
            "edits": json.dumps([{"old": "a", "new": "b"}, json.dumps({"old": "c", "new": "5"})]),
            "main": '{"old": "x", "new": "y"}',
        }
    )
    read = check("edit", text, Edits, Edits.model_json_schema())
    assert read == Edits(
        edits=[Edit(old="a", new="b"), Edit(old="c", new="5")], main=Edit(old="x", new="y")
    )


def test_every_problem_in_one_text() -> None:
    text = failure('{"paht": "a", "limit": 0, "recursive": "maybe", "order": "colour", "x": 1}')
    assert "`path` is missing" in text
    assert "no argument `paht` (did you mean path?)" in text
    assert "`limit` should be greater than or equal to 1, not 0" in text
    assert '`recursive` should be a valid boolean, not "maybe"' in text
    assert "`order` should be 'name' or 'size', not \"colour\"" in text
    assert "no argument `x`;" in text or "no argument `x`." in text


def test_the_number_of_problems_is_bounded() -> None:
    many: dict[str, Any] = {f"wrong{number}": "v" * 1000 for number in range(500)}
    text = failure(json.dumps(many))
    assert f"and {501 - limits.PROBLEMS_MAX} more" in text
    assert len(text) < 2000


def test_a_cut_call_says_why() -> None:  # A2-2
    text = str(explain_cut("write_file", '{"path":"x.py"}'))
    assert "output-token limit" in text
    assert "write_file was not run" in text


def test_nested_schema_in_short_notation() -> None:
    text = schema_text(Edits.model_json_schema())
    assert text == (
        "{edits: [{old: string, new: string}, …], main?: {old: string, new: string}|null}"
    )


@given(st.text())
def test_any_text_gives_an_object_or_a_clean_error(text: str) -> None:
    try:
        assert isinstance(parse_object(text), dict)
    except NotStrict as error:
        str(error).encode()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=20,
    )
)  # fmt: skip
def test_every_json_object_is_read_as_it_is(value: Any) -> None:
    assert parse_object(json.dumps({"v": value})) == {"v": json.loads(json.dumps(value))}
