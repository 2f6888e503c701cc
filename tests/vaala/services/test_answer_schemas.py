"""Answers against their JSON Schema: every keyword is checked, and what cannot be is refused."""

from __future__ import annotations

from typing import Any

import pytest

from vaala.services.schema import fault_of
from vaala.services.schema_check import TooMuch, answer_problems

EVEN: dict[str, Any] = {"multipleOf": 2}


def problems_of(value: Any, schema: Any) -> list[str]:
    return answer_problems(value, schema, 1_000)


CASES: list[tuple[dict[str, Any], Any, Any]] = [
    ({"multipleOf": 0.1}, 0.3, 0.35),
    ({"uniqueItems": True}, [1, "1"], [1, {"a": 1}, {"a": 1}]),
    ({"contains": {"type": "string"}}, [1, "x"], [1, 2]),
    ({"contains": EVEN, "minContains": 2, "maxContains": 2}, [2, 4, 5], [2, 4, 6]),
    ({"not": {"type": "string"}}, 1, "x"),
    ({"if": EVEN, "then": {"minimum": 10}, "else": {"maximum": 5}}, 3, 8),
    ({"if": EVEN, "then": {"minimum": 10}}, 7, 8),
    ({"oneOf": [EVEN, {"minimum": 5}]}, 2, 6),
    ({"anyOf": [EVEN, {"minimum": 5}]}, 6, 3),
    ({"minProperties": 1, "maxProperties": 2}, {"a": 1}, {}),
    ({"propertyNames": {"maxLength": 2}}, {"ab": 1}, {"abc": 1}),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
    ({"dependentSchemas": {"a": {"required": ["c"]}}}, {"b": 1}, {"a": 1}),
    ({"patternProperties": {"^x": EVEN}, "additionalProperties": False}, {"x1": 2}, {"x1": 1}),
    ({"patternProperties": {"^x": EVEN}, "additionalProperties": False}, {"x": 2}, {"y": 2}),
    ({"pattern": "^[a-z]+$"}, "abc", "ABC"),
    ({"$ref": "#/$defs/even", "maximum": 4, "$defs": {"even": EVEN}}, 4, 6),
    ({"$ref": "#/allOf/0", "allOf": [EVEN]}, 2, 3),
    ({"const": 1}, 1.0, True),
    ({"format": "email"}, "no address", None),
]


@pytest.mark.parametrize(("schema", "good", "bad"), CASES)
def test_what_matches_and_what_does_not(schema: dict[str, Any], good: Any, bad: Any) -> None:
    assert fault_of(schema) is None
    assert problems_of(good, schema) == []
    assert "format" in schema or problems_of(bad, schema)


def test_the_place_of_a_problem_is_told() -> None:
    schema = {"items": {"properties": {"a": {"type": "null"}}, "additionalProperties": False}}
    problems = problems_of([{}, {"a": 1, "b": 2}], schema)
    assert problems == ["`1.a` must be null, not 1", "`1.b` must not be there"]
    assert problems_of(1, {"type": "null"}) == ["the answer must be null, not 1"]


def test_what_could_not_be_looked_at_does_not_match() -> None:
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": {"items": {"$ref": "#/$defs/tree"}}}}
    assert problems_of(deep, schema) == ["the answer is nested too deep to be checked"]
    with pytest.raises(TooMuch):
        answer_problems([1] * 100, {"items": {"type": "integer"}}, 100)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"properties": {"a": {"unevaluatedProperties": False}}}, "properties.a."),
        ({"anyOf": [{}, {"dependencies": {}}]}, "anyOf.1.dependencies"),
        ({"items": [{"$ref": "other.json"}]}, "items.0.$ref"),
        ({"patternProperties": {"(?<!a)b": {}}}, "patternProperties.(?<!a)b"),
        ({"pattern": 5}, "pattern"),
        ({"dependentRequired": {"a": "b"}}, "dependentRequired"),
        ({"uniqueItems": 1}, "uniqueItems"),
        ({"minLength": "1"}, "minLength"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema: dict[str, Any], place: str) -> None:
    fault = fault_of(schema)
    assert fault is not None
    assert ".".join(fault.place).startswith(place)
