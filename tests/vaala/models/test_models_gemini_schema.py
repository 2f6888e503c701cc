"""Schemas of tools in the part of JSON Schema that Gemini takes, and in its older form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaala.models.gemini.limits import SCHEMA_DEPTH_MAX
from vaala.models.gemini.schema import normalised, open_api

KNOWN = {
    "type", "format", "description", "enum", "items", "minItems", "maxItems", "minimum", "maximum",
    "anyOf", "properties", "additionalProperties", "required",
}  # fmt: skip
"""What is left of the list of ai.google.dev/api/generate-content, responseJsonSchema."""
OPEN_API = KNOWN - {"additionalProperties"} | {"nullable"}
TYPES = {"string", "number", "integer", "boolean", "array", "object"}


def one(schema: Any) -> Any:
    """The schema of one parameter, as it is sent."""
    return normalised({"type": "object", "properties": {"p": schema}})["properties"]["p"]


def checked(schema: dict[str, Any]) -> None:
    """Fail for what the server refuses in ``parametersJsonSchema``."""
    assert set(schema) <= KNOWN
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    assert set(kinds) <= TYPES | {"null"}
    if "enum" in schema:
        assert schema["enum"]
        assert all(value != "" and not isinstance(value, bool) for value in schema["enum"])
    if "array" in kinds:
        assert isinstance(schema["items"], dict)
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        checked(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            checked(schema[key])


def checked_open_api(schema: dict[str, Any]) -> None:
    """Fail for what the server refuses in ``parameters``."""
    assert set(schema) <= OPEN_API
    if "anyOf" in schema:
        assert set(schema) == {"anyOf"}
        for branch in schema["anyOf"]:
            checked_open_api(branch)
        return
    assert schema["type"] in TYPES
    assert ("items" in schema) == (schema["type"] == "array")
    assert all(isinstance(value, str) for value in schema.get("enum", ()))
    for inner in schema.get("properties", {}).values():
        checked_open_api(inner)
    if "items" in schema:
        checked_open_api(schema["items"])


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "string", "title": "P", "default": "x", "minLength": 1}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "d"},
         {"type": ["integer", "null"], "description": "d"}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]},
         {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"type": ["string", "integer", "null"]},
         {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        ({"type": "boolean", "enum": [True]}, {"type": "boolean"}),
        ({"enum": ["a", "", "a", None]},
         {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"const": 3}, {"type": "integer", "enum": [3]}),
        ({"enum": ["a", 1]}, {}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "array", "items": [{"type": "string"}, {"type": "number"}], "uniqueItems": True},
         {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
         {"type": "integer", "minimum": 1, "maximum": 8}),
        ({"type": "number", "exclusiveMinimum": 0.5}, {"type": "number", "minimum": 0.5}),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True},
         {"type": "number", "minimum": 1}),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": 1, "maximum": float("inf")},
         {"type": "integer", "minimum": 5}),
        ({"type": "string", "format": "uuid", "description": "an id"},
         {"type": "string", "description": "an id (format: uuid)"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "pattern": "(?<!a)b"},
         {"type": "string", "description": "(pattern: (?<!a)b)"}),
        ({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False},
         {"type": "object"}),
        ({"additionalProperties": {"type": "string", "minLength": 1}},
         {"type": "object", "additionalProperties": {"type": "string"}}),
        ({"properties": {"a": {}}, "required": ["a", "a", "b"], "anyOf": [{"required": ["a"]}]},
         {"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ({"allOf": [{"type": "object", "properties": {"a": True}}, {"required": ["a"]}]},
         {"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        (True, {}),
        ({"type": "any"}, {}),
        ({"anyOf": [{"type": "string"}, {}]}, {}),
    ],
)  # fmt: skip
def test_one_parameter(schema: Any, sent: Any) -> None:  # B7-1 B7-5
    assert one(schema) == sent


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"$ref": "#/gone"}, {"not": {}}])
def test_parameters_are_always_an_object(schema: dict[str, Any]) -> None:  # B7-2
    assert normalised(schema) == {"type": "object", "properties": {}}


def test_alternatives_of_the_whole_become_one_object() -> None:  # B7-1
    branches = [
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]},
        {"type": "object", "properties": {"b": {}, "c": {}}, "required": ["b", "c"]},
    ]
    assert normalised({"anyOf": branches, "description": "d"}) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {}, "c": {}},
        "description": "d",
        "required": ["b"],
    }


def test_references_are_written_out() -> None:  # B7-1
    schema = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P~1q", "description": "here"}},
        "$defs": {"P/q": {"type": "integer", "description": "there"}},
    }
    assert normalised(schema)["properties"] == {"p": {"type": "integer", "description": "here"}}


def test_a_schema_in_itself_ends() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/N"}, "v": {"type": "number"}},
    }
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}}
    assert normalised(schema)["properties"]["n"]["properties"] == {
        "next": {}, "v": {"type": "number"},
    }  # fmt: skip


@pytest.mark.parametrize("keyword", ["allOf", "anyOf"])
def test_references_that_double_stay_small(keyword: str) -> None:
    """Twenty definitions of two references each are a million when they are written out."""
    defs: dict[str, Any] = {"D0": {"type": "string"}}
    for number in range(1, 21):
        two = {key: {"$ref": f"#/$defs/D{number - 1}"} for key in "ab"}
        defs[f"D{number}"] = {keyword: [{"type": "object", "properties": two}, {"type": "string"}]}
    schema = {"properties": {"p": {"$ref": "#/$defs/D20"}}, "$defs": defs}
    assert len(json.dumps(normalised(schema))) < 200_000


def test_depth_is_bounded() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        schema = {"type": "array", "items": schema}
    found, depth = one(schema), 0
    while found:
        found, depth = found.get("items", {}), depth + 1
    assert depth == SCHEMA_DEPTH_MAX


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"enum": ["a", None], "description": "d"},
         {"anyOf": [{"type": "string", "enum": ["a"], "nullable": True, "description": "d"}]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({}, {"type": "string"}),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False},
         {"type": "object", "properties": {"a": {"type": "string"}}}),
    ],
)  # fmt: skip
def test_the_older_form(schema: Any, sent: Any) -> None:
    assert open_api(one(schema)) == sent


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
NAMES = st.sampled_from(["a", "b", "c d"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    kinds = st.sampled_from([*TYPES, "null", "STRING", "any"])
    return st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds) | VALUES,
            "properties": st.dictionaries(NAMES, inner) | VALUES,
            "required": st.lists(NAMES | VALUES) | VALUES,
            "items": inner | st.lists(inner) | VALUES,
            "prefixItems": st.lists(inner),
            "additionalProperties": inner | VALUES,
            "patternProperties": VALUES,
            "anyOf": st.lists(inner) | VALUES,
            "oneOf": st.lists(inner) | VALUES,
            "allOf": st.lists(inner) | VALUES,
            "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/x", "other.json", "#/x"]),
            "$defs": st.dictionaries(st.just("x"), inner),
            "enum": st.lists(VALUES) | VALUES,
            "const": VALUES,
            "format": st.sampled_from(["uuid", "int32", "double", "date-time"]) | VALUES,
            "pattern": VALUES,
            "description": VALUES,
            "minimum": VALUES,
            "exclusiveMinimum": VALUES,
            "maximum": VALUES,
            "exclusiveMaximum": VALUES,
            "minItems": VALUES,
            "not": inner,
            "$schema": VALUES,
        },
    )


@given(st.recursive(st.booleans() | st.just({}), schemas, max_leaves=6))
@settings(max_examples=60)
def test_any_schema_is_made_legal(schema: Any) -> None:
    sent = normalised(schema if isinstance(schema, dict) else {})
    assert sent["type"] == "object"
    checked(sent)
    checked_open_api(open_api(sent))
    json.dumps(sent, allow_nan=False)
    assert normalised(sent) == sent
