"""A good stateless Responses request, and for each rule the changes that it alone refuses."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

from tests.vaala.testing.counterexamples import LOOSE, Counterexamples, Pick, Request, top

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF").decode()
examples = Counterexamples()
refuses, sets, drops = examples.refuses, examples.sets, examples.drops


def said(words: str) -> Request:
    return {"type": "input_text", "text": words}


def call(call_id: str, item_id: str | None = None) -> Request:
    item = {
        "type": "function_call",
        "call_id": call_id,
        "name": "read_file",
        "arguments": '{"path": "a.py"}',
    }
    return item if item_id is None else {**item, "id": item_id}


def output(call_id: str, value: Any = "print(1)") -> Request:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def thought(item_id: str) -> Request:
    summary = [{"type": "summary_text", "text": "Which file?"}]
    return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": "gAAAAAB"}


def answer(item_id: str, words: str) -> Request:
    part = {"type": "output_text", "text": words, "annotations": []}
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def tool(name: str) -> Request:
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": ["array", "null"], "items": {"type": "integer"}},
        },
        "required": ["path", "lines"],
        "additionalProperties": False,
    }
    description = "Reads a file."
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": True,
    }


def good_request() -> Request:
    return {
        "model": "gpt-5.5",
        "instructions": "You help.",
        "input": [
            {"role": "user", "content": "Look at a.py."},
            thought("rs_1"),
            call("call_1", "fc_1"),
            call("call_2"),
            output("call_2", [said("print(2)"), {"type": "input_image", "image_url": PNG}]),
            output("call_1"),
            thought("rs_2"),
            answer("msg_1", "It prints."),
            {"role": "assistant", "content": "As I said.", "phase": "final_answer"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    said("And this?"),
                    {"type": "input_image", "image_url": PNG, "detail": "low"},
                    {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
                ],
            },
        ],
        "tools": [tool("read_file"), tool("write_file"), {"type": "web_search"}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "max_output_tokens": 1000,
        "temperature": 0.2,
        "metadata": {"a": "b"},
        "truncation": "disabled",
        "prompt_cache_key": "k",
    }


def items(request: Request, kind: str) -> list[Any]:
    return [item for item in request["input"] if item.get("type", "message") == kind]


def of(kind: str) -> Any:
    return lambda request, pick: pick(items(request, kind))


def part(kind: str) -> Any:
    def find(request: Request, pick: Pick) -> Any:
        contents = [i.get("content") or i.get("output") for i in request["input"]]
        lists = [content for content in contents if isinstance(content, list)]
        return pick([p for content in lists for p in content if p["type"] == kind])

    return find


def prompt(request: Request, pick: Pick) -> Any:
    return request["input"][pick([0, 9])]


def reply(request: Request, pick: Pick) -> Any:
    return request["input"][pick([7, 8])]


def function(request: Request, pick: Pick) -> Any:
    return pick(request["tools"][:2])


def parameters(request: Request, pick: Pick) -> Any:
    return function(request, pick)["parameters"]


def lax_parameters(request: Request, pick: Pick) -> Any:
    found = function(request, pick)
    found["strict"] = None
    return found["parameters"]


examples.add_bodies(part("input_text"), "text")
sets("keys.unknown", 1, where=top, key="max_tokens")
drops("keys.missing", "model", "input", where=top)
sets("model", "", " ", "gpt\n", 4, None, where=top, key="model")
sets("store", True, None, where=top, key="store")
drops("store", "store", where=top)
sets("state.server", "resp_1", where=top, key="previous_response_id")
sets("state.server", "conv_1", {"id": "conv_1"}, where=top, key="conversation")
sets("state.server", True, where=top, key="background")
sets("max_output_tokens.range", 15, -1, 16.5, True, "100", where=top, key="max_output_tokens")
sets("sampling.range", -0.1, 2.1, "1", where=top, key="temperature")
sets("sampling.range", 1.1, where=top, key="top_p")
sets("sampling.range", 21, where=top, key="top_logprobs")
sets("field.type", "", " ", 7, where=top, key="instructions")
sets("field.type", 1, "yes", where=top, key="stream")
sets("field.type", [], {"a": 1}, {str(i): "" for i in range(17)}, where=top, key="metadata")
sets("field.type", {"include_usage": True}, [], where=top, key="stream_options")
sets("field.type", "middle", where=top, key="truncation")
sets("reasoning.settings", "low", {"effort": "huge"}, {"summary": "long"}, {"budget": 1},
     where=top, key="reasoning")  # fmt: skip
sets(
    "text.format",
    None,
    [],
    {"form": 1},
    {"verbosity": "huge"},
    {"format": {"type": "xml"}},
    {"format": {"type": "json_object", "name": "a"}},
    {"format": {"type": "json_schema", "name": "a"}},
    {"format": {"type": "json_schema", "name": "a b", "schema": {"type": "object"}}},
    {"format": {"type": "json_schema", "name": "a", "schema": []}},
    {"format": {"type": "json_schema", "name": "a", "schema": {}, "strict": 1}},
    where=top,
    key="text",
)
sets(
    "text.schema",
    *({"format": {"type": "json_schema", "name": "a"} | one} for one in LOOSE),
    where=top,
    key="text",
)
sets("include", "usage", ["usage"], [1], where=top, key="include")

sets("input.shape", [], None, {}, 7, where=top, key="input")
sets("item.type", "tool", "function_result", 7, ["message"], where=prompt, key="type")
sets("item.keys", "now", where=prompt, key="timestamp")
sets("item.keys", "read_file", where=of("function_call_output"), key="name")
sets("item.keys", "aside", where=reply, key="phase")
sets("item.keys", "commentary", where=prompt, key="phase")
drops("item.keys", "content", where=prompt)
drops("item.keys", "arguments", "name", where=of("function_call"))
sets("item.id", "call_1", "fc 1", "fc" + "1" * 63, 7, where=of("function_call"), key="id")
sets("item.id", "item_1", "", where=lambda r, p: r["input"][7], key="id")
sets("item.id", "item_1", "r" * 65, where=of("reasoning"), key="id")
sets("item.status", "done", 7, where=of("function_call"), key="status")
sets("message.role", "tool", "User", None, ["user"], where=prompt, key="role")
sets("content.type", None, 7, said("x"), where=prompt, key="content")
sets("content.empty", "", " \n", [], [said("")], [said("\t")], where=prompt, key="content")
sets("content.empty", "", " ", where=top, key="input")
sets("content.empty", [said(" ")], where=of("function_call_output"), key="output")
sets(
    "content.part",
    ["text"],
    [{}],
    [{"type": "text", "text": "x"}],
    [{"type": "output_text", "text": "x"}],
    [{"type": "input_text"}],
    [{"type": "input_text", "text": 3}],
    [{"type": "input_text", "text": "x", "cache_control": {}}],
    where=prompt,
    key="content",
)
sets("content.part", [said("x")], [{"type": "input_image", "image_url": PNG}], where=reply,
     key="content")  # fmt: skip
sets("content.part", None, where=part("output_text"), key="annotations")
sets("content.image", "a.png", "data:image/png;base64,@@", "data:text/plain;base64,QQ==", 7,
     where=part("input_image"), key="image_url")  # fmt: skip
sets("content.image", "file_1", where=part("input_image"), key="file_id")
sets("content.image", "best", where=part("input_image"), key="detail")
drops("content.image", "image_url", where=part("input_image"))
sets("content.file", "@@", "", where=part("input_file"), key="file_data")
sets("content.file", "", where=part("input_file"), key="filename")
sets("content.file", "https://x.y/a.pdf", where=part("input_file"), key="file_url")

sets("call.name", "", "a.b", "\u8bfb", "a" * 65, None, where=of("function_call"), key="name")
sets(
    "call.arguments",
    *("", "{", "[]", '"a"', "null", "{'a': 1}", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000),
    *({}, None),
    where=of("function_call"),
    key="arguments",
)
sets("text.surrogate", '{"a": "\\ud83d"}', where=of("function_call"), key="arguments")
sets("text.nul", '{"a": "\\u0000"}', where=of("function_call"), key="arguments")
sets("output.shape", 7, None, {"a": 1}, "a" * 10_485_761, where=of("function_call_output"),
     key="output")  # fmt: skip
sets("reasoning.item", None, "x", ["x"], [{"type": "text", "text": "x"}], where=of("reasoning"),
     key="summary")  # fmt: skip
sets("reasoning.item", [said("x")], where=of("reasoning"), key="content")
sets("reasoning.item", "completed", where=of("reasoning"), key="status")
drops("reasoning.item", "id", "summary", where=of("reasoning"))
sets("reasoning.encrypted", "", None, where=of("reasoning"), key="encrypted_content")
drops("reasoning.encrypted", "encrypted_content", where=of("reasoning"))
drops("reasoning.following", "id", where=lambda r, p: r["input"][7])

sets("tools.count", [tool(f"t{i}") for i in range(129)], where=top, key="tools")
sets("tools.shape", {}, None, ["read_file"], [{"type": "custom"}], where=top, key="tools")
sets("tools.shape", 1, where=function, key="examples")
sets("tools.shape", 7, where=function, key="description")
sets("tools.shape", "yes", where=function, key="strict")
drops("tools.shape", "parameters", "name", where=function)
sets("tools.name", "", "a.b", "\u8bfb", "a" * 65, None, where=function, key="name")
sets("tools.parameters", None, [], {}, {"type": "string"}, where=function, key="parameters")
sets("tools.parameters", [{}], where=parameters, key="anyOf")
drops("tools.parameters", "properties", where=lax_parameters)
sets(
    "tools.schema",
    {"a": {"type": "array"}},
    {"a": {"type": "text"}},
    {"a": {"exclusiveMinimum": True}},
    {"a": {"enum": []}},
    {"a": "string"},
    [],
    where=lax_parameters,
    key="properties",
)
sets("tools.strict", True, where=parameters, key="additionalProperties")
sets("tools.strict", ["path"], where=parameters, key="required")
drops("tools.strict", "additionalProperties", "required", where=parameters)
sets(
    "tools.strict",
    {"a": {"anyOf": [{"type": "object", "properties": {}}]}, "path": {}, "lines": {}},
    where=lambda r, p: _all_required(parameters(r, p)),
    key="properties",
)
sets(
    "tool_choice",
    None,
    "any",
    {"type": "function"},
    {"type": "function", "name": "gone"},
    {"type": "function", "function": {"name": "read_file"}},
    {"type": "allowed_tools", "mode": "any", "tools": []},
    where=top,
    key="tool_choice",
)


def _all_required(schema: Request) -> Request:
    schema["required"] = ["a", "path", "lines"]
    return schema


@refuses("state.server")
def reference(request: Request, pick: Pick) -> None:
    request["input"].insert(0, {"type": "item_reference", "id": "rs_9"})


@refuses("tools.unique")
def repeated_tool(request: Request, pick: Pick) -> None:
    request["tools"].append(deepcopy(function(request, pick)))


@refuses("call.id")
def illegal_call_id(request: Request, pick: Pick) -> None:
    asked = pick(items(request, "function_call"))
    answered = next(
        o for o in items(request, "function_call_output") if o["call_id"] == asked["call_id"]
    )
    asked["call_id"] = answered["call_id"] = pick(["", "c" * 65])


@refuses("item.duplicate")
def item_twice(request: Request, pick: Pick) -> None:
    request["input"].insert(1, deepcopy(request["input"][1]))


@refuses("reasoning.following")
def reasoning_before_a_prompt(request: Request, pick: Pick) -> None:
    request["input"].insert(pick([0, 9]), thought("rs_9"))


@refuses("reasoning.following")
def reasoning_at_the_end(request: Request, pick: Pick) -> None:
    request["input"].append(thought("rs_9"))


@refuses("pairing.missing")
def output_lost(request: Request, pick: Pick) -> None:
    request["input"].remove(pick(items(request, "function_call_output")))


@refuses("pairing.orphan")
def output_of_no_call(request: Request, pick: Pick) -> None:
    request["input"].insert(pick([0, 6, 10]), output("call_9"))


@refuses("pairing.duplicate_result")
def output_twice(request: Request, pick: Pick) -> None:
    request["input"].append(deepcopy(pick(items(request, "function_call_output"))))


@refuses("pairing.duplicate_id")
def call_id_used_again(request: Request, pick: Pick) -> None:
    used = pick(items(request, "function_call"))["call_id"]
    request["input"] += [call(used), output(used)]
