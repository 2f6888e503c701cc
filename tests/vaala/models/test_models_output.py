"""How a document is asked for: by a field where model and server know one, else in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.vaala.testing.answers import NotSent, body_of, model_of
from vaala.models.anthropic.output_schema import answer_schema
from vaala.models.base import ModelFailure, ModelRequest, OutputFormat, ToolSpec, UserSaid
from vaala.models.chat.encode import Dialect, request_body
from vaala.models.http import Http
from vaala.models.output import is_strict
from vaala.models.provider import Api
from vaala.package import Package
from vaala.testing import ChatServer, Reply, chat_server
from vaala.testing import provider_chat as chat
from vaala.testing.provider import Request
from vaala.testing.validators import (
    Violation,
    check_anthropic_request,
    check_gemini_request,
    check_responses_request,
    validate_chat_request,
)
from vaala_protocol.content import TextContent

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "description": "Its name."},
        "tags": {"type": "array", "items": {"type": ["string", "null"]}},
    },
    "required": ["city"],
}
MAP: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}
LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "$defs": {"node": {"type": "object", "properties": {"x": {"$ref": "#/$defs/node"}}}},
}
SCHEMAS = (CLOSED, OPEN, MAP, LIST, TREE, {"type": "object", "oneOf": [CLOSED, OPEN]})
TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
MODELS: dict[Api, tuple[str, ...]] = {
    "chat": ("gpt-5", "qwen3"),
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-1", "claude-opus-5", "kimi-k2"),
    "responses": ("gpt-5", "gpt-4o"),
    "gemini": ("gemini-2.5-flash", "gemini-3-pro-preview", "gemma-3"),
}
CHECKS: dict[Api, Callable[..., list[Violation]]] = {
    "chat": validate_chat_request,
    "anthropic": check_anthropic_request,
    "responses": check_responses_request,
    "gemini": check_gemini_request,
}


def request(
    schema: dict[str, Any], *, tools: bool = False, again: bool = False, **more: Any
) -> ModelRequest:
    said = (UserSaid((TextContent(text="How large is Bergen?"),)),)
    output = OutputFormat(schema, again)
    return ModelRequest("Be brief.", (TOOL,) if tools else (), b"", said, output=output, **more)


async def sent(api: Api, name: str, wanted: ModelRequest) -> dict[str, Any]:
    http = NotSent()
    return dict(json.loads(await body_of(model_of(api, name, http), http, wanted)))


def chat_body(wanted: ModelRequest, **dialect: Any) -> dict[str, Any]:
    return dict(json.loads(request_body(wanted, "m", Dialect(**dialect))))


@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("schema", SCHEMAS)
async def test_every_schema_becomes_a_valid_request_that_tells_of_it(
    api: Api, schema: dict[str, Any]
) -> None:
    for name in MODELS[api]:
        for tools in (False, True):
            for again in (False, True):
                wanted = request(schema, tools=tools, again=again, effort="low")
                body = await sent(api, name, wanted)
                options = {"signatures": True} if name.startswith("gemini-3") else {}
                violations = CHECKS[api](json.dumps(body).encode(), **options)
                assert violations == [], (name, tools, again)
                told = "matches this JSON Schema" in json.dumps(body)
                asked = "response_format" in body or "text" in body or "output_config" in body
                asked = asked or "responseMimeType" in body.get("generationConfig", {})
                assert told or asked, (name, tools, again)
                assert told or not again, "what did not help alone is not left alone"


async def test_the_fields_of_each_format() -> None:
    body = chat_body(request(CLOSED))
    described = {"name": "answer", "schema": CLOSED, "strict": True}
    assert body["response_format"] == {"type": "json_schema", "json_schema": described}
    assert body["messages"][0]["content"] == "Be brief."
    body = await sent("responses", "gpt-5", request(CLOSED, tools=True))
    assert body["text"] == {"format": {"type": "json_schema", **described}}
    body = await sent("anthropic", "claude-sonnet-4-5", request(CLOSED, tools=True))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}}
    body = await sent("gemini", "gemini-3-pro-preview", request(CLOSED, tools=True))
    config = body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"].keys() == {"city", "people"}
    assert "toolConfig" not in body


async def test_options_beside_a_schema_stay() -> None:
    wanted = request(CLOSED, options={"text": {"verbosity": "low"}})
    body = await sent("responses", "gpt-5", wanted)
    assert body["text"].keys() == {"verbosity", "format"}
    body = await sent("anthropic", "claude-opus-4-7", request(CLOSED, effort="xhigh"))
    assert body["output_config"].keys() == {"effort", "format"}


async def test_where_calls_and_a_schema_exclude_each_other_the_schema_comes_last() -> None:
    body = chat_body(request(CLOSED, tools=True))
    assert "response_format" not in body
    assert "matches this JSON Schema" in body["messages"][0]["content"]
    body = chat_body(request(CLOSED, tools=True, again=True))
    assert (body["response_format"]["type"], body["tool_choice"]) == ("json_schema", "none")
    body = chat_body(request(CLOSED, tools=True), calls_beside_output=True)
    assert body["response_format"]["type"] == "json_schema"
    body = await sent("gemini", "gemini-2.5-flash", request(CLOSED, tools=True))
    assert "responseMimeType" not in body.get("generationConfig", {})
    body = await sent("gemini", "gemini-2.5-flash", request(CLOSED, tools=True, again=True))
    assert body["generationConfig"]["responseMimeType"] == "application/json"
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (OPEN, False),
        (MAP, False),
        ({**CLOSED, "anyOf": [{}]}, False),
        ({**CLOSED, "required": ["city"]}, False),
        ({**CLOSED, "properties": {"city": OPEN, "people": {}}}, False),
    ],
)
def test_a_schema_is_strict_only_where_openai_says_so(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) == strict


@pytest.mark.parametrize(
    "schema",
    [
        *(MAP, LIST, TREE, {"type": "object"}),
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"allOf": [CLOSED, OPEN]}}},
        {"type": "object", "properties": {"a": {"enum": [[1]]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "properties": {}, "required": ["a"], "additionalProperties": False},
    ],
)
def test_what_the_messages_api_cannot_say(schema: dict[str, Any]) -> None:
    assert answer_schema(schema) is None


def test_the_messages_api_is_told_bounds_in_words() -> None:
    found = answer_schema(OPEN)
    assert found is not None
    assert found["additionalProperties"] is False
    city, tags = found["properties"].values()
    assert city == {"description": "Its name. (minLength: 2)", "type": "string"}
    assert tags["items"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def refusing(*words: str) -> Any:
    """Answer with a refusal while one of the words stands in the request."""

    def answer(request: Request) -> Reply:
        for word in words:
            if word.encode() in request.body:
                return chat.error(400, f"this {word} is unavailable now: response_format")
        return chat.text("{}")

    return answer


@pytest.mark.parametrize(
    ("refused", "kinds"),
    [
        ((), ["json_schema"]),
        (("json_schema",), ["json_schema", "json_object"]),
        (("json_schema", "json_object"), ["json_schema", "json_object", None]),
    ],
)
async def test_a_server_is_asked_for_what_it_knows(
    refused: tuple[str, ...], kinds: list[str | None]
) -> None:
    async with chat_server() as server:
        server.answer(refusing(*refused))
        http = Http({}, Package())
        model = model_of("chat", "m", http, server.base_url)
        for _ in range(2):
            async with model.stream(request(CLOSED)) as events:
                assert [event async for event in events]
        await http.aclose()
        # The second time it is known.
        assert formats(server) == [*kinds, kinds[-1]]


def formats(server: ChatServer) -> list[str | None]:
    return [one.json.get("response_format", {}).get("type") for one in server.requests]


@pytest.mark.parametrize(
    ("api", "name", "said", "field"),
    [
        ("anthropic", "claude-opus-5", "output_config.format: no", "output_config"),
        ("responses", "gpt-4", "'text.format' of type 'json_schema' is not supported", "text"),
        ("gemini", "gemini-3-pro", "JSON mode is not enabled for this model", "generationConfig"),
    ],
)
async def test_a_refused_schema_is_told_in_words(
    api: Api, name: str, said: str, field: str
) -> None:
    async with chat_server() as server:
        server.answer(lambda _: chat.error(400, said))
        http = Http({}, Package())
        model = model_of(api, name, http, server.base_url)
        with pytest.raises(ModelFailure):
            async with model.stream(request(CLOSED)):
                pass
        await http.aclose()
        first, second = (one.json for one in server.requests)
        assert "schema" in json.dumps(first[field]).lower()
        assert "schema" not in json.dumps(second.get(field, {})).lower()
        assert "matches this JSON Schema" in json.dumps(second)
