"""Arguments against the JSON Schema of a tool from elsewhere, and schemas that are none."""

from __future__ import annotations

import time
from typing import Any

import pytest

from vaala.services import limits
from vaala.services.schema import schema_fault
from vaala.services.schema_check import argument_problems


def prop(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **more}


FITS: list[tuple[Any, Any]] = [
    ({"type": "integer"}, 3),
    ({"type": "integer"}, 3.0),
    ({"type": "number"}, 3),
    ({"type": ["string", "null"]}, None),
    ({"type": "array", "items": {"type": "string"}}, ["x"]),
    (
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}},
        ["x", None],
    ),
    ({"type": "array", "items": [{"type": "string"}]}, ["x", 3]),
    ({"enum": [1, "x", None]}, None),
    ({"const": {"k": [1]}}, {"k": [1]}),
    ({"minimum": 1, "maximum": 3}, 3),
    ({"minLength": 1}, 0),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
    ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 2),
    ({"$ref": "#/$defs/name"}, "x"),
    ({"$ref": "https://example.org/schema"}, 5),
    ({"$ref": "#/nothing/there"}, 5),
    ({"pattern": "(a+)+$"}, "b" * 50 + "a"),
    ({"pattern": "(?=a)"}, "b"),
    (True, 5),
    ({}, {"anything": [1]}),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"x": 1}),
    ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x": 1}),
    ({"patternProperties": {"(?=x)": False}, "additionalProperties": False}, {"y": 1}),
]
DEFS = {"$defs": {"name": {"type": "string"}, "tree": {"items": {"$ref": "#/$defs/tree"}}}}


@pytest.mark.parametrize(("schema", "value"), FITS)
def test_what_fits(schema: Any, value: Any) -> None:
    whole = prop(schema, **DEFS)
    assert schema_fault(whole) is None
    assert argument_problems({"a": value}, whole) == []


WRONG: list[tuple[Any, Any, str]] = [
    ({"type": "integer"}, 3.5, "`a` must be integer, not 3.5"),
    ({"type": "integer"}, True, "`a` must be integer, not true"),
    ({"type": ["string", "null"]}, 1, "`a` must be string or null, not 1"),
    ({"type": "boolean"}, 1, "`a` must be boolean, not 1"),
    ({"items": {"type": "string"}}, ["x", 1], "`a.1` must be string, not 1"),
    ({"enum": ["x", "y"]}, "z", '`a` must be one of "x", "y", not "z"'),
    ({"enum": [1]}, True, "`a` must be one of 1, not true"),
    ({"const": 5}, 6, "`a` must be 5, not 6"),
    ({"minimum": 1}, 0, "`a` must be at least 1, not 0"),
    ({"exclusiveMaximum": 1}, 1, "`a` must be below 1, not 1"),
    ({"minLength": 3}, "xy", '`a` length at least 3, not "xy"'),
    ({"maxItems": 0}, [1], "`a` items at most 0, not [1]"),
    ({"pattern": "(a+)+$"}, "a" * 50 + "b", "`a` must match"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "`a` is none of the 2 forms"),
    ({"oneOf": [{"minimum": 5}]}, 1, "`a` is none of the 1 forms"),
    ({"allOf": [{"minimum": 5}]}, 1, "`a` must be at least 5, not 1"),
    ({"$ref": "#/$defs/name"}, 1, "`a` must be string, not 1"),
    (False, 1, "`a` must not be there"),
    ({"required": ["x"], "properties": {"x": {}}}, {}, "`a.x` is missing"),
    ({"additionalProperties": False}, {"x": 1}, "there is no argument `a.x`"),
    ({"additionalProperties": {"type": "null"}}, {"x": 1}, "`a.x` must be null, not 1"),
]


@pytest.mark.parametrize(("schema", "value", "problem"), WRONG)
def test_what_does_not_fit(schema: Any, value: Any, problem: str) -> None:
    whole = prop(schema, **DEFS)
    assert schema_fault(whole) is None
    (found,) = argument_problems({"a": value}, whole)
    assert found.startswith(problem)


def test_references_with_escapes_and_circles() -> None:
    whole = {"$defs": {"a/b~c": {"type": "null"}}, "properties": {"x": {"$ref": "#/$defs/a~1b~0c"}}}
    assert argument_problems({"x": 1}, whole) == ["`x` must be null, not 1"]
    circle = prop({"$ref": "#/$defs/c"}, **{"$defs": {"c": {"$ref": "#/$defs/c"}}})
    assert argument_problems({"a": 1}, circle) == []
    tree: Any = []
    for _ in range(500):
        tree = [tree]
    assert argument_problems({"a": tree}, prop({"$ref": "#/$defs/tree"}, **DEFS)) == []


def test_alternatives_that_multiply_end_soon() -> None:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(limits.SCHEMA_DEPTH_MAX - 2):
        schema = {"anyOf": [schema, schema]}
    began = time.process_time()
    argument_problems({"a": 1}, prop(schema))
    assert time.process_time() - began < 2, "2 to the power of 30 steps would take hours"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 1_000_000, '"' + "x" * 58 + "…"),
        ([1] * 100_000, "a list of 100000"),
        ([["x" * 1_000_000]], "a list of 1"),
        ({"k": "x" * 1_000_000}, "an object of 1"),
        ({f"{number}": 1 for number in range(100_000)}, "an object of 100000"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 99 else "",
)
def test_a_large_value_costs_no_more_than_a_small_one(value: Any, shown: str) -> None:
    form = {"properties": {"a": {"type": "null"}}}
    began = time.process_time()
    found = argument_problems({"a": value}, {"allOf": [form] * 1_000})
    assert time.process_time() - began < 1, "to write it out each time would take seconds"
    assert found == [f"`a` must be null, not {shown}"] * 1_000


FAULTS: list[tuple[Any, str]] = [
    ([], "a schema is [], not an object"),
    (True, "a schema is true, not an object"),
    ({"properties": {"a": []}}, "a schema is [], not an object"),
    ({"type": "text"}, 'there is no type "text"'),
    ({"type": []}, "there is no type []"),
    ({"type": ["string", 1]}, "there is no type 1"),
    ({"type": ["array", "null"]}, "an array has no items: servers of models refuse that"),
    ({"required": ["a", 1]}, 'required is ["a", 1], not a list of names'),
    ({"enum": []}, "enum is [], not a list with an entry"),
    ({"anyOf": {}}, "anyOf is {}, not a list with an entry"),
    ({"properties": []}, "properties is [], not an object"),
    ({"items": {"minimum": "1"}}, 'minimum is "1", not a number'),
    ({"items": [{"maxLength": True}]}, "maxLength is true, not a number"),
    ({"not": 5}, "a schema is 5, not an object"),
]


@pytest.mark.parametrize(("schema", "fault"), FAULTS)
def test_a_schema_that_is_none(schema: Any, fault: str) -> None:
    assert schema_fault(schema) == fault


def test_a_schema_that_is_too_deep() -> None:
    schema: dict[str, Any] = {}
    for _ in range(limits.SCHEMA_DEPTH_MAX + 1):
        schema = {"items": schema}
    assert schema_fault(schema) == "schemas are nested deeper than 32 levels"
