"""A good generateContent request, and for each rule the changes that it alone refuses."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

from tests.vaala.testing.counterexamples import Counterexamples, Pick, Request, top

PNG = base64.b64encode(b"\x89PNG").decode()
SIGNATURE = base64.b64encode(b"thought").decode()
examples = Counterexamples()
refuses, sets, drops = examples.refuses, examples.sets, examples.drops


def call(call_id: str, name: str = "read_file") -> Request:
    return {"functionCall": {"id": call_id, "name": name, "args": {"path": "a.py"}}}


def response(call_id: str, name: str = "read_file") -> Request:
    return {"functionResponse": {"id": call_id, "name": name, "response": {"output": "print(1)"}}}


def user(*parts: Request) -> Request:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Request) -> Request:
    return {"role": "model", "parts": list(parts)}


def declaration(name: str) -> Request:
    parameters = {
        "type": "OBJECT",
        "properties": {
            "path": {"type": "STRING", "description": "Where."},
            "lines": {"type": "array", "items": {"type": "integer"}, "nullable": True},
            "mode": {"anyOf": [{"type": "STRING", "enum": ["r", "w"]}, {"type": "INTEGER"}]},
        },
        "required": ["path"],
    }
    return {"name": name, "description": "Reads a file.", "parameters": parameters}


def as_json_schema(name: str) -> Request:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"name": name, "description": "Writes.", "parametersJsonSchema": schema}


def good_request() -> Request:
    return {
        "systemInstruction": {"parts": [{"text": "You help."}]},
        "contents": [
            user({"text": "Look at a.py."}),
            model(
                {"text": "Which file?", "thought": True},
                {**call("1"), "thoughtSignature": SIGNATURE},
                call("2"),
            ),
            user(response("1"), response("2")),
            model({"text": "It prints.", "thoughtSignature": SIGNATURE}),
            user(
                {"text": "And this?"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://x.y/a"}},
            ),
            model(
                {
                    "function_call": {"id": "3", "name": "read_file"},
                    "thought_signature": "skip_thought_signature_validator",
                }
            ),
            user(response("3")),
        ],
        "tools": [{"functionDeclarations": [declaration("read_file"), as_json_schema("write")]}],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]}
        },
        "generationConfig": {
            "temperature": 0.2,
            "maxOutputTokens": 1000,
            "stopSequences": ["END"],
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": -1},
            "responseModalities": ["TEXT"],
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    }


def parts(request: Request, kind: str) -> list[Any]:
    return [part for turn in request["contents"] for part in turn["parts"] if kind in part]


def of(kind: str) -> Any:
    return lambda request, pick: pick(parts(request, kind))[kind]


def part(kind: str) -> Any:
    return lambda request, pick: pick(parts(request, kind))


def any_turn(request: Request, pick: Pick) -> Any:
    return pick(request["contents"])


def prompt(request: Request, pick: Pick) -> Any:
    return request["contents"][pick([0, 4])]


def config(request: Request, pick: Pick) -> Any:
    return request["generationConfig"]


def json_config(request: Request, pick: Pick) -> Any:
    request["generationConfig"]["responseMimeType"] = "application/json"
    request["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    return request["generationConfig"]


def thinking(request: Request, pick: Pick) -> Any:
    return request["generationConfig"]["thinkingConfig"]


def calling(request: Request, pick: Pick) -> Any:
    return request["toolConfig"]["functionCallingConfig"]


def declarations(request: Request) -> Any:
    return request["tools"][0]["functionDeclarations"]


def declared(request: Request, pick: Pick) -> Any:
    return pick(declarations(request))


def schema(request: Request, pick: Pick) -> Any:
    return declarations(request)[0]["parameters"]


def properties(request: Request, pick: Pick) -> Any:
    return schema(request, pick)["properties"]


examples.add_bodies(part("text"), "text")
sets("keys.unknown", 1, where=top, key="model_name")
sets("keys.unknown", 1, where=any_turn, key="name")
sets("keys.unknown", 1, where=part("text"), key="cacheControl")
sets("keys.unknown", 1, where=of("functionCall"), key="arguments")
sets("keys.unknown", 1, where=config, key="max_tokens")
sets("keys.twice", {"text": "x"}, where=part("functionCall"), key="function_call")
sets("field.type", 7, [], where=part("text"), key="text")
sets("field.type", "yes", where=part("text"), key="thought")
sets("field.type", "x", [], where=part("functionCall"), key="functionCall")
sets("field.type", [], "x", where=top, key="generationConfig")
sets("generation.range", -0.1, 2.1, "1", True, where=config, key="temperature")
sets("generation.range", 0, 1.5, where=config, key="maxOutputTokens")
sets("generation.range", 9, where=config, key="candidateCount")
sets("generation.range", 1.1, where=config, key="top_p")
sets("generation.config", "END", [""], list("abcdef"), where=config, key="stopSequences")
sets("generation.config", "text/html", where=config, key="responseMimeType")
sets("generation.config", ["VIDEO"], "TEXT", where=config, key="responseModalities")
sets("generation.thinking", "HIGH", where=thinking, key="thinkingLevel")
sets("generation.thinking", -2, "1", where=thinking, key="thinkingBudget")
sets("generation.thinking", 1, where=thinking, key="includeThoughts")
sets("generation.schema", {"type": "OBJECT"}, where=config, key="responseSchema")
sets("generation.schema", [], {"type": "text"}, where=json_config, key="responseJsonSchema")
sets("generation.calls", "application/json", where=config, key="responseMimeType")
sets("schema.unknown", {"type": "OBJECT", "$schema": "x"}, where=json_config, key="responseSchema")
sets(
    "safety",
    {},
    ["x"],
    [{"category": "HARM_CATEGORY_HARASSMENT"}],
    [{"category": "HARM", "threshold": "OFF"}],
    [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "SOME"}],
    [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}] * 2,
    where=top,
    key="safetySettings",
)

sets("contents.shape", [], None, {}, "hello", where=top, key="contents")
drops("contents.shape", "contents", where=top)
sets("content.role", "assistant", "system", "function", None, 7, where=any_turn, key="role")
drops("content.role", "role", where=any_turn)
sets("content.parts", [], None, {}, "hello", where=any_turn, key="parts")
sets("content.parts", {"parts": []}, {}, where=top, key="systemInstruction")
sets("part.data", [{}], [{"text": None}], [{"thought": True}], where=prompt, key="parts")
sets("part.data", "x", where=part("functionCall"), key="text")
sets("part.place", [{"executableCode": {}}], where=prompt, key="parts")
sets("part.place", {"parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}, where=top,
     key="systemInstruction")  # fmt: skip
sets("text.blank", "", " \n", where=part("text"), key="text")
sets("text.blank", {"parts": [{"text": " "}]}, where=top, key="systemInstruction")
sets("part.signature", "@@", "", "abcde", 7, where=part("thoughtSignature"), key="thoughtSignature")
sets("part.inline_data", "", "@@", None, 7, where=of("inlineData"), key="data")
sets("part.inline_data", "", "png", None, where=of("inlineData"), key="mimeType")
sets("part.file_data", "", None, where=of("fileData"), key="fileUri")
sets("call.shape", [], "{}", where=of("functionCall"), key="args")
sets("response.shape", [], "text", None, where=of("functionResponse"), key="response")
sets("response.shape", {}, [{}], where=of("functionResponse"), key="parts")
sets("pairing.match", "9", where=of("functionCall"), key="id")
sets("pairing.match", "write", where=of("functionResponse"), key="name")
drops("pairing.match", "id", where=of("functionResponse"))

sets("tools.shape", {}, [{}], [{"functionDeclarations": []}], [{"googleSearch": 1}], where=top,
     key="tools")  # fmt: skip
sets("tools.shape", 7, where=declared, key="description")
sets("tools.name", "", "1a", "a/b", "\u8bfb", "a" * 65, None,
     where=lambda r, p: declarations(r)[1], key="name")  # fmt: skip
sets("tools.parameters", {"type": "STRING"}, where=lambda r, p: declarations(r)[0],
     key="parameters")  # fmt: skip
sets("tools.parameters", {"type": "object"}, where=lambda r, p: declarations(r)[0],
     key="parametersJsonSchema")  # fmt: skip
sets("tools.json_schema", [], {}, {"type": "string"}, {"type": "object", "required": "a"},
     where=lambda r, p: declarations(r)[1], key="parametersJsonSchema")  # fmt: skip
sets("schema.unknown", False, where=schema, key="additionalProperties")
sets("schema.unknown", {"type": "STRING", "const": "a"}, {"type": "STRING", "$ref": "#"},
     {"type": "INTEGER", "exclusiveMinimum": 1}, where=properties, key="extra")  # fmt: skip
sets("schema.type", {"type": "TEXT"}, {"type": ["STRING", "NULL"]}, {"type": 7}, {},
     {"type": "STRING", "items": {"type": "STRING"}}, {"type": "STRING", "properties": {}},
     where=properties, key="extra")  # fmt: skip
sets("schema.items", {"type": "ARRAY"}, where=properties, key="extra")
sets("schema.enum", {"type": "INTEGER", "enum": ["1"]}, where=properties, key="extra")
sets(
    "schema.value",
    {"type": "STRING", "enum": []},
    {"type": "STRING", "enum": [""]},
    {"type": "STRING", "enum": [1]},
    {"type": "STRING", "format": "uuid"},
    {"type": "STRING", "minLength": -1},
    {"type": "STRING", "description": 7},
    {"anyOf": []},
    where=properties,
    key="extra",
)
sets("schema.required", ["gone"], where=schema, key="required")
sets("tool_config", "SOME", 7, where=calling, key="mode")
sets("tool_config", "AUTO", "NONE", where=calling, key="mode")
sets("tool_config", [], ["gone"], "read_file", where=calling, key="allowedFunctionNames")


@refuses("tools.unique")
def repeated_declaration(request: Request, pick: Pick) -> None:
    declarations(request).append(deepcopy(declared(request, pick)))


@refuses("call.name")
def illegal_name(request: Request, pick: Pick) -> None:
    rename(request, "name", pick(["a b", "1a", "\u8bfb", "a" * 65, "a/b"]))


@refuses("call.id")
def blank_id(request: Request, pick: Pick) -> None:
    rename(request, "id", pick([" ", ""]))


@refuses("response.name")
def nameless_response(request: Request, pick: Pick) -> None:
    of("functionResponse")(request, pick)["name"] = pick(["", " ", None])


@refuses("part.signature_missing", signatures=True)
def call_without_signature(request: Request, pick: Pick) -> None:
    del request["contents"][5]["parts"][0]["thought_signature"]


@refuses("pairing.count")
def response_lost(request: Request, pick: Pick) -> None:
    request["contents"][2]["parts"].remove(pick(request["contents"][2]["parts"]))


@refuses("pairing.count")
def response_twice(request: Request, pick: Pick) -> None:
    request["contents"][2]["parts"].append(deepcopy(pick(request["contents"][2]["parts"])))


@refuses("pairing.count")
def no_response(request: Request, pick: Pick) -> None:
    request["contents"][-1] = user({"text": "Go on."})


@refuses("pairing.orphan")
def response_of_no_call(request: Request, pick: Pick) -> None:
    request["contents"][pick([0, 4])]["parts"].append(response("9"))


@refuses("order.call")
def call_after_an_answer(request: Request, pick: Pick) -> None:
    request["contents"].insert(pick([1, 5]), model({"text": "I look."}))


@refuses("order.call")
def call_first(request: Request, pick: Pick) -> None:
    del request["contents"][0]


@refuses("order.last")
def answer_last(request: Request, pick: Pick) -> None:
    request["contents"].append(model({"text": "It"}))


def rename(request: Request, key: str, value: str) -> None:
    """Give the call of the first step, and its response, another value under ``key``."""
    request["contents"][1]["parts"][1]["functionCall"][key] = value
    request["contents"][2]["parts"][0]["functionResponse"][key] = value
