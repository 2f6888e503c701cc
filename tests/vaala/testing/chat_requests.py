"""Good chat requests, and for each rule the changes that it alone refuses."""

from __future__ import annotations

import base64
import json
from copy import deepcopy
from typing import Any

from tests.vaala.testing.counterexamples import LOOSE, Counterexamples, Pick, Request, top

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()


def call(call_id: str, name: str = "read_file", arguments: str = '{"path": "a.py"}') -> Request:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call_id: str, content: str = "print(1)") -> Request:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool(name: str) -> Request:
    parameters = {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": ["array", "null"], "items": {"type": "integer", "minimum": 1}},
            "mode": {"anyOf": [{"enum": ["r", "w"]}, {"$ref": "#/$defs/mode"}]},
        },
        "$defs": {"mode": {"type": "string", "pattern": "^[a-z]$"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    function = {"name": name, "description": "Reads a file.", "parameters": parameters}
    return {"type": "function", "function": function}


def good_request() -> Request:
    return {
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "Look at a.py."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call("call00001"), call("call00002")],
            },
            result("call00002"),
            result("call00001"),
            {"role": "assistant", "content": "It prints."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "And this?"},
                    {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                ],
            },
        ],
        "tools": [tool("read_file"), tool("write_file")],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 1000,
        "temperature": 0.2,
        "stop": ["END"],
        "response_format": {"type": "text"},
    }


def of_role(request: Request, *roles: str) -> list[Request]:
    return [message for message in request["messages"] if message["role"] in roles]


def calls_of(request: Request) -> list[Request]:
    return [call for message in request["messages"] for call in message.get("tool_calls", ())]


def results_of(request: Request, call_id: str) -> list[Request]:
    return [m for m in of_role(request, "tool") if m["tool_call_id"] == call_id]


def plain_answers(request: Request) -> list[Request]:
    return [m for m in of_role(request, "assistant") if "tool_calls" not in m]


examples = Counterexamples()
refuses, sets = examples.refuses, examples.sets


def any_message(request: Request, pick: Pick) -> Any:
    return pick(request["messages"])


def with_content(request: Request, pick: Pick) -> Any:
    return pick(of_role(request, "system", "user", "tool"))


def any_call(request: Request, pick: Pick) -> Any:
    return pick(calls_of(request))


def called(request: Request, pick: Pick) -> Any:
    return any_call(request, pick)["function"]


def calling(request: Request, pick: Pick) -> Any:
    messages = [m for m in request["messages"] if "tool_calls" in m]
    return pick(messages)


def offered(request: Request, pick: Pick) -> Any:
    return pick(request["tools"])["function"]


def parameters(request: Request, pick: Pick) -> Any:
    return offered(request, pick)["parameters"]


def options_of(request: Request, pick: Pick) -> Any:
    return request["stream_options"]


sets("keys.unknown", 1, where=top, key="num_ctx")
sets("model", "", " ", "gpt-4.1\n", 4, where=top, key="model")
sets("stream.shape", 1, "true", where=top, key="stream")
sets("stream_options.shape", [], "usage", where=top, key="stream_options")
sets("stream_options.shape", 1, None, where=options_of, key="include_usage")
sets("stream_options.shape", True, where=options_of, key="usage")
sets("stream_options.without_stream", False, None, where=top, key="stream")
sets("max_tokens.range", 0, -1, 1.5, True, "10", where=top, key="max_tokens")
sets("max_tokens.conflict", 10, where=top, key="max_completion_tokens")
sets("temperature.range", -0.1, 2.1, "1", False, where=top, key="temperature")
sets("sampling.range", -0.1, 1.1, where=top, key="top_p")
sets("sampling.range", 0, 129, where=top, key="n")
sets("sampling.range", 0.5, 2**64, where=top, key="seed")
sets("sampling.range", -2.5, where=top, key="presence_penalty")
sets("field.type", [], ["a", ""], ["a"] * 5, "", 3, where=top, key="stop")
sets("field.type", "huge", where=top, key="reasoning_effort")
sets("field.type", None, " ", where=top, key="user")
sets("field.type", "yes", None, where=top, key="parallel_tool_calls")
sets("field.type", [], where=top, key="metadata")
sets("response_format", {"type": "xml"}, None, where=top, key="response_format")
sets(
    "response_format",
    {"type": "json_schema", "json_schema": {"name": "a"}},
    {"type": "json_schema", "json_schema": {"schema": {}}},
    {"type": "json_object", "extra": 1},
    where=top,
    key="response_format",
)
sets(
    "response_format.schema",
    *({"type": "json_schema", "json_schema": {"name": "a"} | one} for one in LOOSE),
    where=top,
    key="response_format",
)
sets("response_format.word", {"type": "json_object"}, where=top, key="response_format")
sets("messages.shape", [], None, {}, "hello", ["hello"], where=top, key="messages")
sets("message.role", "developer", "function", "User", None, ["user"], where=any_message, key="role")
sets("message.keys", "now", where=any_message, key="timestamp")
sets(
    "message.name", "Jo Doe", "", 3, "a" * 65, where=lambda r, p: p(of_role(r, "user")), key="name"
)
sets("content.required", None, where=with_content, key="content")
sets("content.type", 7, {"type": "text", "text": "x"}, where=any_message, key="content")
sets("content.empty", "", " \n\t", [], where=any_message, key="content")
sets("content.empty", [{"type": "text", "text": " "}], where=any_message, key="content")
sets(
    "content.part",
    ["text"],
    [{"type": "text"}],
    [{"type": "text", "text": 3}],
    [{"type": "text", "text": "x", "cache_control": {}}],
    [{"type": "video", "video": "x"}],
    [{"type": ["text"]}],
    where=any_message,
    key="content",
)
sets(
    "content.part",
    [{"type": "image_url", "image_url": {"url": PNG}}],
    where=lambda r, p: p(of_role(r, "tool", "system", "assistant")),
    key="content",
)
sets(
    "content.image",
    *(
        [{"type": "image_url", "image_url": image}]
        for image in (
            PNG,
            {},
            {"url": "a.png"},
            {"url": "data:image/png;base64,"},
            {"url": "data:image/png;base64,@@@@"},
            {"url": "data:text/plain;base64,QQ=="},
            {"url": PNG, "detail": "best"},
            {"url": PNG, "width": 3},
        )
    ),
    where=lambda r, p: p(of_role(r, "user")),
    key="content",
)
sets(
    "content.part",
    [{"type": "file", "file": "x"}],
    where=lambda r, p: p(of_role(r, "user")),
    key="content",
)
sets("assistant.empty", None, where=lambda r, p: p(plain_answers(r)), key="content")

sets("tool_call.shape", 0, where=any_call, key="index")
sets("tool_call.shape", "tool", None, where=any_call, key="type")
sets("tool_call.shape", {}, {"name": "a"}, "a", where=any_call, key="function")
sets("tool_call.name", "", "a.b", "读", "a" * 65, "a\n", None, where=called, key="name")
sets(
    "tool_call.arguments",
    *("", "{", "[]", '"a"', "null", "{'a': 1}", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000),
    *({}, None),
    where=called,
    key="arguments",
)
sets("text.surrogate", '{"a": "\\ud83d"}', where=called, key="arguments")
sets("text.nul", '{"a": "\\u0000"}', where=called, key="arguments")
sets("body.json", '{"a": 1e999}', where=called, key="arguments")
sets("body.depth", '{"a": ' + "[" * 127 + "]" * 127 + "}", where=called, key="arguments")

sets("tools.count", [], [tool(f"t{i}") for i in range(129)], where=top, key="tools")
sets("tools.shape", {}, None, ["read_file"], [{"type": "function"}], where=top, key="tools")
sets("tools.shape", 1, where=offered, key="examples")
sets("tools.shape", "", None, where=offered, key="description")
sets("tools.shape", "yes", where=offered, key="strict")
sets("tools.name", "", "a.b", "读", "a" * 65, None, where=offered, key="name")
sets(
    "tools.parameters",
    None,
    [],
    {},
    {"type": "string"},
    {"type": "object"},
    where=offered,
    key="parameters",
)
sets("tools.parameters", [{}], where=parameters, key="anyOf")
sets(
    "tools.schema",
    {"a": {"type": "array"}},
    {"a": {"type": ["array", "null"]}},
    {"a": {"type": "text"}},
    {"a": {"type": []}},
    {"a": {"exclusiveMinimum": True}},
    {"a": {"minLength": -1}},
    {"a": {"anyOf": []}},
    {"a": {"enum": []}},
    {"a": {"items": [{"type": "any"}]}},
    {"a": {"multipleOf": 0}},
    {"a": {"pattern": 3}},
    {"a": "string"},
    [],
    where=parameters,
    key="properties",
)
sets("tools.schema", "path", ["path", "path"], [1], where=parameters, key="required")
sets("tool_choice", None, "any", {"type": "function"}, where=top, key="tool_choice")
sets(
    "tool_choice", {"type": "function", "function": {"name": "gone"}}, where=top, key="tool_choice"
)


@refuses("keys.missing")
def without_model(request: Request, pick: Pick) -> None:
    del request[pick(["model", "messages"])]


@refuses("tools.absent")
def choice_without_tools(request: Request, pick: Pick) -> None:
    del request["tools"]
    del request[pick(["tool_choice", "parallel_tool_calls"])]


@refuses("tools.unique")
def repeated_tool(request: Request, pick: Pick) -> None:
    request["tools"].append(deepcopy(pick(request["tools"])))


@refuses("tool_call.shape")
def empty_calls(request: Request, pick: Pick) -> None:
    pick(plain_answers(request))["tool_calls"] = []


@refuses("pairing.missing")
def result_lost(request: Request, pick: Pick) -> None:
    request["messages"].remove(pick(of_role(request, "tool")))
    request["messages"].append({"role": "user", "content": "Go on."})


@refuses("pairing.missing")
def result_after_the_next_role(request: Request, pick: Pick) -> None:
    asked = calling(request, pick)
    asked["tool_calls"].append(call("call99999"))
    at = request["messages"].index(asked) + len(asked["tool_calls"])
    request["messages"].insert(at, {"role": "user", "content": "Wait."})


@refuses("pairing.orphan")
def result_of_no_call(request: Request, pick: Pick) -> None:
    at = request["messages"].index(pick(of_role(request, "tool", "user")))
    request["messages"].insert(at + 1, result("call99999"))


@refuses("pairing.duplicate_result")
def result_twice(request: Request, pick: Pick) -> None:
    answer = pick(of_role(request, "tool"))
    request["messages"].insert(request["messages"].index(answer) + 1, deepcopy(answer))


@refuses("pairing.duplicate_id")
def id_used_again(request: Request, pick: Pick) -> None:
    used = any_call(request, pick)["id"]
    again = {"role": "assistant", "content": None, "tool_calls": [call(used)]}
    request["messages"] += [{"role": "user", "content": "Again."}, again, result(used)]


@refuses("pairing.duplicate_id")
def id_twice_in_a_message(request: Request, pick: Pick) -> None:
    asked = calling(request, pick)
    asked["tool_calls"].append(deepcopy(pick(asked["tool_calls"])))


@refuses("order.system")
def late_system(request: Request, pick: Pick) -> None:
    at = request["messages"].index(pick(of_role(request, "user")))
    request["messages"].insert(at, {"role": "system", "content": "Be brief."})


@refuses("order.last")
def prefilled(request: Request, pick: Pick) -> None:
    request["messages"] += [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]


@refuses("order.assistant_run")
def two_answers(request: Request, pick: Pick) -> None:
    answer = pick(plain_answers(request))
    request["messages"].insert(request["messages"].index(answer), deepcopy(answer))


@refuses("order.no_user")
def no_user(request: Request, pick: Pick) -> None:
    asked = deepcopy(calling(request, pick))
    ids = [asked_call["id"] for asked_call in asked["tool_calls"]]
    request["messages"] = [asked, *(result(call_id) for call_id in ids)]


@refuses("order.alternation", alternation=True)
def two_users(request: Request, pick: Pick) -> None:
    user = pick(of_role(request, "user"))
    request["messages"].insert(request["messages"].index(user), {"role": "user", "content": "x"})


@refuses("order.alternation", alternation=True)
def user_after_tool(request: Request, pick: Pick) -> None:
    answer = pick(of_role(request, "tool"))
    kept = request["messages"][: request["messages"].index(answer) + 1]
    asked = next(m for m in reversed(kept) if "tool_calls" in m)
    kept = [*kept[: kept.index(asked) + 1], *(result(c["id"]) for c in asked["tool_calls"])]
    request["messages"] = [*kept, {"role": "user", "content": "Stop."}]


@refuses("tool_call.id")
def illegal_id(request: Request, pick: Pick) -> None:
    rename(request, pick, pick(["", "a" * 41, "call.1", "call 1", "é", "call_1\n"]))


@refuses("tool_call.id_mistral", mistral_call_ids=True)
def long_id(request: Request, pick: Pick) -> None:
    rename(request, pick, pick(["call_0001", "abcdefgh", "abcdefghij"]))


def rename(request: Request, pick: Pick, new_id: str) -> None:
    target = any_call(request, pick)
    (answer,) = results_of(request, target["id"])
    target["id"] = answer["tool_call_id"] = new_id


@refuses("text.surrogate")
def lone_surrogate(request: Request, pick: Pick) -> None:
    any_message(request, pick)["content"] = pick(["cut \ud83d", "\ude00 cut"])


@refuses("text.surrogate")
def lone_surrogate_escape(request: Request, pick: Pick) -> bytes:
    any_message(request, pick)["content"] = "cut \ud83d"
    return json.dumps(request).encode()


@refuses("text.nul")
def nul(request: Request, pick: Pick) -> None:
    any_message(request, pick)["content"] = pick(["a\0b", [{"type": "text", "text": "\0b"}]])


@refuses("text.nul")
def nul_in_a_name(request: Request, pick: Pick) -> None:
    parameters(request, pick)["properties"]["a\0b"] = {}


@refuses("body.utf8")
def broken_utf8(request: Request, pick: Pick) -> bytes:
    any_message(request, pick)["content"] = "héllo"
    return json.dumps(request, ensure_ascii=False).encode().replace(b"h\xc3\xa9", b"h\xe9")


@refuses("body.json")
def not_json(request: Request, pick: Pick) -> Any:
    text = json.dumps(request)
    return pick(
        [
            text[:-1].encode(),
            b"",
            b"\xef\xbb\xbf" + text.encode(),
            text.replace('"temperature": 0.2', '"temperature": NaN').encode(),
            text.replace('"minimum": 1', '"default": 1e999').encode(),
            text.replace('"model"', '"model": "other", "model"', 1).encode(),
        ]
    )


@refuses("body.json")
def no_json_value(request: Request, pick: Pick) -> None:
    request["temperature"] = pick([float("nan"), float("inf"), {1}, b"1"])


@refuses("body.shape")
def no_object(request: Request, pick: Pick) -> Any:
    return pick([b"[]", b"null", b'"x"'])


@refuses("body.depth")
def deep_schema(request: Request, pick: Pick) -> None:
    schema: Request = {}
    for _ in range(pick([130, 5_000])):
        schema = {"not": schema}
    parameters(request, pick)["properties"]["deep"] = schema


@refuses("body.depth")
def deep_bytes(request: Request, pick: Pick) -> bytes:
    return b"[" * 100_000 + b"]" * 100_000


@refuses("body.size", max_body_bytes=3_000)
def large(request: Request, pick: Pick) -> Any:
    any_message(request, pick)["content"] = "é" * 1_500
    return pick([request, json.dumps(request).encode()])
