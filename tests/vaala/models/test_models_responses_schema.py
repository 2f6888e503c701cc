"""Parameters of tools are schemas that servers compile, and accept what they accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala.models.schema import legal_parameters

NUMBER = {"type": "number"}


@pytest.mark.parametrize(
    ("given_", "legal"),
    [
        ({}, {"type": "object", "properties": {}}),  # B7-2
        ({"properties": {"a": NUMBER}}, {"type": "object", "properties": {"a": NUMBER}}),
        (
            {"type": "object", "properties": {"a": {"type": "array"}}},
            {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
        ),
        (
            {"anyOf": [{"properties": {"a": NUMBER}, "required": ["a"]}, {"required": ["b"]}, 1]},
            {"type": "object", "properties": {"a": NUMBER}},
        ),
        (
            {"type": ["object", "null"], "not": {}, "enum": [1]},
            {"type": "object", "properties": {}},
        ),
    ],
)
def test_the_top_is_a_plain_object(given_: dict[str, Any], legal: dict[str, Any]) -> None:  # B7-1
    assert legal_parameters(given_) == legal


@pytest.mark.parametrize(
    ("given_", "legal"),
    [
        ({"minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),  # B7-5
        ({"minimum": 3, "exclusiveMinimum": False}, {"minimum": 3}),
        ({"default": float("inf"), "type": "number"}, NUMBER),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["string", "string", "any"]}, {"type": ["string"]}),
        ({"type": "any"}, {}),
        ({"required": True}, {}),
        ({"required": ["a", "a", 1]}, {"required": ["a"]}),
        ({"enum": [True, False]}, {"enum": [True, False]}),
        ({"enum": []}, {}),
        ({"anyOf": [NUMBER, True]}, {"anyOf": [NUMBER, True]}),
        ({"anyOf": []}, {}),
        ({"items": [NUMBER]}, {"items": {}}),
        ({"minLength": 2.0, "maxLength": "2"}, {"minLength": 2}),
        ({"multipleOf": 0}, {}),
        ({"description": None, "format": "uuid", "pattern": "(?<=a)b"},
         {"format": "uuid", "pattern": "(?<=a)b"}),
        ({"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}),
        ({"additionalProperties": {"type": "array"}},
         {"additionalProperties": {"type": "array", "items": {}}}),
        ({"x-order": [1, {"a": float("nan")}]}, {"x-order": [1, {"a": None}]}),
        (7, {}),
    ],
)  # fmt: skip
def test_keywords_are_well_formed(given_: Any, legal: Any) -> None:
    assert legal_parameters({"properties": {"a": given_}})["properties"]["a"] == legal


def test_definitions_stay() -> None:
    schema = {"type": "object", "properties": {}, "$defs": {"x": {"type": "array"}}}
    assert legal_parameters(schema)["$defs"] == {"x": {"type": "array", "items": {}}}


def test_what_is_too_deep_is_anything() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}}
    text = json.dumps(legal_parameters(schema))
    assert text.count("{") < 100
    assert "string" not in text


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
    | st.sampled_from(["array", "object"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "items", "properties", "anyOf", "enum", "required", "minimum",
                         "exclusiveMinimum", "default", "$ref", "minLength", "x"]),
        inner, max_size=5),
    max_leaves=15,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=3), _VALUE) | st.fixed_dictionaries({"properties": _VALUE}))
def test_any_schema_becomes_one(schema: dict[str, Any]) -> None:
    legal = legal_parameters(schema)
    json.dumps(legal, allow_nan=False)
    assert legal["type"] == "object"
    assert isinstance(legal["properties"], dict)
    assert legal_parameters(legal) == legal
