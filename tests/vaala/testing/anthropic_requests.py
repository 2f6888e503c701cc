"""A good Messages request, and for each rule the changes that it alone refuses."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

from tests.vaala.testing.counterexamples import Counterexamples, Pick, Request, top

PNG = base64.b64encode(b"\x89PNG").decode()
examples = Counterexamples()
refuses, sets, drops = examples.refuses, examples.sets, examples.drops


def text(words: str) -> Request:
    return {"type": "text", "text": words}


def image(**source: str) -> Request:
    given = source or {"type": "base64", "media_type": "image/png", "data": PNG}
    return {"type": "image", "source": given}


def use(tool_id: str, name: str = "read_file") -> Request:
    return {"type": "tool_use", "id": tool_id, "name": name, "input": {"path": "a.py"}}


def result(tool_id: str, **more: Any) -> Request:
    return {"type": "tool_result", "tool_use_id": tool_id, "content": "print(1)", **more}


def thought() -> Request:
    return {"type": "thinking", "thinking": "Which file?", "signature": "EqQB"}


def tool(name: str) -> Request:
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": ["array", "null"]},
            "mode": {"anyOf": [{"enum": ["r", "w"]}, {"$ref": "#/$defs/mode"}]},
        },
        "$defs": {"mode": {"type": "string"}},
        "required": ["path"],
    }
    return {"name": name, "description": "Reads a file.", "input_schema": schema}


def good_request() -> Request:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "system": [{**text("You help."), "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {"role": "user", "content": "Look at a.py."},
            {
                "role": "assistant",
                "content": [thought(), text("I look."), use("toolu_1"), use("toolu_2")],
            },
            {
                "role": "user",
                "content": [
                    result("toolu_2", content=[text("print(2)"), image()]),
                    result("toolu_1", is_error=True),
                    text("And then?"),
                ],
            },
            {"role": "assistant", "content": [text("It prints.")]},
            {
                "role": "user",
                "content": [
                    {"type": "document", "source": {"type": "url", "url": "https://x.y/a.pdf"}},
                    image(type="url", url="https://x.y/a.png"),
                    {**text("And this?"), "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
        "tools": [tool("read_file"), tool("write_file"), {"type": "bash_20250124", "name": "bash"}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "temperature": 0.2,
        "stop_sequences": ["END"],
        "stream": True,
        "metadata": {"user_id": "u"},
    }


def in_a_tool_loop() -> Request:
    """A good request whose answer goes on after a result, with thinking."""
    request = good_request()
    request["messages"] = request["messages"][:3]
    del request["messages"][2]["content"][-1]
    request["thinking"] = {"type": "enabled", "budget_tokens": 2048}
    request["temperature"] = 1
    return request


def paused() -> Request:
    """A good request that lets the server go on with a search it has begun."""
    request = good_request()
    search = {**use("srvtoolu_1", "web_search"), "type": "server_tool_use"}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    again = {**search, "id": "srvtoolu_2"}
    request["messages"].append({"role": "assistant", "content": [search, found, again]})
    return request


def blocks(request: Request, kind: str) -> list[Any]:
    inside = [m["content"] for m in request["messages"] if isinstance(m["content"], list)]
    return [block for content in inside for block in content if block["type"] == kind]


def of(kind: str) -> Any:
    return lambda request, pick: pick(blocks(request, kind))


def any_message(request: Request, pick: Pick) -> Any:
    return pick(request["messages"])


def answer(request: Request, pick: Pick) -> Any:
    return request["messages"][3]


def custom(request: Request, pick: Pick) -> Any:
    return pick(request["tools"][:2])


def schema(request: Request, pick: Pick) -> Any:
    return custom(request, pick)["input_schema"]


def with_thinking(request: Request, pick: Pick) -> Any:
    request["temperature"] = 1
    request["thinking"] = {"type": "enabled", "budget_tokens": 2048}
    return request


def thinking_of(request: Request, pick: Pick) -> Any:
    return with_thinking(request, pick)["thinking"]


examples.add_bodies(of("text"), "text")
sets("keys.unknown", 1, where=top, key="response_format")
drops("keys.missing", "model", "max_tokens", "messages", where=top)
sets("model", "", " ", "claude\n", 4, None, where=top, key="model")
sets("max_tokens.range", 0, -1, 1.5, True, "10", None, where=top, key="max_tokens")
sets("sampling.range", -0.1, 1.1, "1", None, where=top, key="temperature")
sets("sampling.range", 2, where=top, key="top_p")
sets("sampling.range", -1, 0.5, where=top, key="top_k")
sets("field.type", 1, None, where=top, key="stream")
sets("field.type", [], {"user": "u"}, where=top, key="metadata")
sets("field.type", "priority", where=top, key="service_tier")
sets("field.type", [], {"effort": "huge"}, {"format": {}}, where=top, key="output_config")
sets(
    "output_config.schema",
    *(
        {"format": {"type": "json_schema", "schema": schema}}
        for schema in (
            {"type": "object"},
            {"type": "object", "additionalProperties": True},
            {"type": "array", "items": {"type": "object", "properties": {}}},
            {"type": "text"},
        )
    ),
    where=top,
    key="output_config",
)
sets("field.type", "", 1, where=top, key="container")
sets("field.type", [], where=top, key="context_management")
sets("field.type", {}, where=top, key="mcp_servers")
sets("stop_sequences", [" "], ["a", ""], "END", [1], where=top, key="stop_sequences")

sets("thinking.shape", True, {}, {"type": "on"}, {"type": "enabled"}, where=top, key="thinking")
sets("thinking.shape", "all", where=thinking_of, key="display")
sets("thinking.budget", 1023, 4096, "2048", True, where=thinking_of, key="budget_tokens")
sets("thinking.sampling", 0.5, where=with_thinking, key="temperature")
sets("thinking.sampling", 5, where=with_thinking, key="top_k")
sets("thinking.sampling", 0.9, where=with_thinking, key="top_p")
sets(
    "thinking.tool_choice",
    {"type": "any"},
    {"type": "tool", "name": "read_file"},
    where=with_thinking,
    key="tool_choice",
)
sets("thinking.block", "", None, 3, where=of("thinking"), key="signature")
sets("thinking.block", None, where=of("thinking"), key="thinking")

sets("messages.shape", [], None, {}, "hello", ["hello"], where=top, key="messages")
sets("message.keys", "now", where=any_message, key="timestamp")
drops("message.keys", "content", where=lambda r, p: r["messages"][3])
drops("message.keys", "role", where=any_message)
sets("message.role", "system", "tool", None, ["user"], where=any_message, key="role")
sets("content.type", None, 7, text("x"), where=answer, key="content")
sets("content.type", None, {}, where=top, key="system")
sets("content.empty", "", [], where=answer, key="content")
sets("text.blank", " \n", [text("")], [text("\t")], where=answer, key="content")
sets("text.blank", "", " ", [text(" ")], where=top, key="system")
sets("text.blank", [text("")], where=of("tool_result"), key="content")
sets("block.type", ["text"], [{}], [{"type": ["text"]}], where=answer, key="content")
sets("block.type", [image()], where=answer, key="content")
sets("block.type", [image()], where=top, key="system")
sets("block.type", [thought(), text("x")], where=lambda r, p: r["messages"][4], key="content")
sets("block.keys", "x", where=of("tool_use"), key="text")
sets("block.keys", {"type": "ephemeral"}, where=of("thinking"), key="cache_control")
sets("block.keys", [{"type": "text"}], [{"type": "text", "text": 3}], where=answer, key="content")
drops("block.keys", "signature", where=of("thinking"))
drops("block.keys", "input", where=of("tool_use"))
sets(
    "image.source",
    PNG,
    {},
    {"type": "base64", "media_type": "image/bmp", "data": PNG},
    {"type": "base64", "media_type": "image/png", "data": "@@"},
    {"type": "base64", "media_type": "image/png", "data": ""},
    {"type": "url", "url": "a.png"},
    {"type": "file", "file_id": ""},
    where=of("image"),
    key="source",
)
sets(
    "document.source",
    {},
    {"type": "base64", "media_type": "text/html", "data": PNG},
    {"type": "base64", "media_type": "application/pdf", "data": "@@"},
    {"type": "text", "media_type": "text/plain", "data": ""},
    where=of("document"),
    key="source",
)
sets("tool_use.name", "", "a.b", "a b", "\u8bfb", "a" * 65, None, where=of("tool_use"), key="name")
sets("tool_use.input", "{}", None, [], where=of("tool_use"), key="input")
sets("tool_result.shape", 7, text("x"), None, where=of("tool_result"), key="content")
sets("tool_result.shape", "yes", None, where=lambda r, p: blocks(r, "tool_result")[1],
     key="is_error")  # fmt: skip
sets("tool_result.error", True, where=lambda r, p: blocks(r, "tool_result")[0], key="is_error")

sets("cache.shape", {}, {"type": "permanent"}, {"type": "ephemeral", "ttl": "2h"}, "ephemeral",
     where=custom, key="cache_control")  # fmt: skip
sets("tools.shape", {}, "read_file", None, where=top, key="tools")
sets("tools.shape", 1, where=custom, key="parameters")
sets("tools.shape", None, 3, where=custom, key="description")
sets("tools.shape", "yes", where=custom, key="strict")
sets("tools.shape", "function", where=custom, key="type")
drops("tools.shape", "input_schema", where=custom)
sets("tools.name", "", "a.b", "\u8bfb", "a" * 65, None, where=custom, key="name")
sets("tools.input_schema", None, [], {}, {"type": "string"}, where=custom, key="input_schema")
sets("tools.input_schema", [{}], where=schema, key="anyOf")
sets("tools.property", {"filter[id]": {}}, {"a" * 65: {}}, {"a b": {}}, where=schema,
     key="properties")  # fmt: skip
sets(
    "tools.schema",
    {"a": {"type": "text"}},
    {"a": {"items": [{}]}},
    {"a": {"exclusiveMinimum": True}},
    {"a": {"enum": []}},
    {"a": "string"},
    [],
    where=schema,
    key="properties",
)
sets("tools.schema", "path", ["path", "path"], where=schema, key="required")
sets(
    "tool_choice",
    None,
    "auto",
    {"type": "required"},
    {"type": "tool"},
    {"type": "tool", "name": "gone"},
    {"type": "none", "disable_parallel_tool_use": True},
    {"type": "auto", "disable_parallel_tool_use": 1},
    where=top,
    key="tool_choice",
)


@refuses("tool_choice")
def choice_without_tools(request: Request, pick: Pick) -> None:
    del request["tools"]


@refuses("tools.demanded", tools_demanded=True)
def blocks_without_tools(request: Request, pick: Pick) -> None:
    del request["tools"], request["tool_choice"]


@refuses("tools.unique")
def repeated_tool(request: Request, pick: Pick) -> None:
    request["tools"].append(deepcopy(pick(request["tools"])))


@refuses("tool_use.id")
def illegal_id(request: Request, pick: Pick) -> None:
    used = pick(blocks(request, "tool_use"))
    (answered,) = [b for b in blocks(request, "tool_result") if b["tool_use_id"] == used["id"]]
    used["id"] = answered["tool_use_id"] = pick(["", "call.1", "Bash:0", "\u00e9", "a\n"])


@refuses("thinking.block")
def redacted_to_nothing(request: Request, pick: Pick) -> None:
    request["messages"][1]["content"][0] = {"type": "redacted_thinking", "data": ""}


@refuses("thinking.last")
def thinking_at_the_end(request: Request, pick: Pick) -> None:
    answer(request, pick)["content"].append(thought())


@refuses("thinking.first")
def no_thinking_in_a_tool_loop(request: Request, pick: Pick) -> Request:
    request = in_a_tool_loop()
    del request["messages"][1]["content"][0]
    return request


@refuses("thinking.off")
def thinking_in_a_tool_loop_without(request: Request, pick: Pick) -> Request:
    request = in_a_tool_loop()
    request["thinking"] = {"type": "disabled"}
    return request


@refuses("image.limits")
def large_image(request: Request, pick: Pick) -> None:
    data = base64.b64encode(bytes(5 * 1024 * 1024 + 1)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    pick(blocks(request, "image"))["source"] = source


@refuses("image.limits")
def many_images(request: Request, pick: Pick) -> None:
    request["messages"][4]["content"] = [image() for _ in range(100)]


@refuses("pairing.missing")
def result_lost(request: Request, pick: Pick) -> None:
    request["messages"][2]["content"].remove(pick(blocks(request, "tool_result")))


@refuses("pairing.missing")
def result_after_the_next_message(request: Request, pick: Pick) -> None:
    request["messages"][1]["content"].append(use("toolu_3"))


@refuses("pairing.missing")
def call_at_the_end(request: Request, pick: Pick) -> None:
    search = {**use("srvtoolu_1", "web_search"), "type": "server_tool_use"}
    last = {"role": "assistant", "content": [search, use("toolu_3")]}
    request["messages"].append(last)


@refuses("pairing.orphan")
def result_of_no_call(request: Request, pick: Pick) -> None:
    request["messages"][2]["content"].insert(pick([0, 1, 2]), result("toolu_9"))


@refuses("pairing.duplicate_result")
def result_twice(request: Request, pick: Pick) -> None:
    content = request["messages"][2]["content"]
    content.insert(0, deepcopy(pick(blocks(request, "tool_result"))))


@refuses("pairing.duplicate_id")
def id_used_again(request: Request, pick: Pick) -> None:
    used = pick(blocks(request, "tool_use"))["id"]
    request["messages"] += [
        {"role": "assistant", "content": [use(used)]},
        {"role": "user", "content": [result(used)]},
    ]
    request["messages"][-2]["content"].append(text("Again."))


@refuses("pairing.server")
def server_result_of_no_call(request: Request, pick: Pick) -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_9", "content": []}
    answer(request, pick)["content"].append(found)


@refuses("order.results_first")
def text_before_a_result(request: Request, pick: Pick) -> None:
    request["messages"][2]["content"].insert(pick([0, 1]), text("Wait."))


@refuses("order.first")
def answer_first(request: Request, pick: Pick) -> None:
    request["messages"].insert(0, {"role": "assistant", "content": "Hello."})


@refuses("order.last")
def prefilled(request: Request, pick: Pick) -> None:
    request["messages"].append({"role": "assistant", "content": "{"})


@refuses("order.alternation", alternation=True)
def two_prompts(request: Request, pick: Pick) -> None:
    request["messages"].insert(0, {"role": "user", "content": "Hello."})


@refuses("cache.count")
def many_breakpoints(request: Request, pick: Pick) -> None:
    for node in (*request["tools"], *blocks(request, "tool_use")):
        node["cache_control"] = {"type": "ephemeral", "ttl": "1h"}


@refuses("cache.order")
def short_before_long(request: Request, pick: Pick) -> None:
    pick(request["tools"])["cache_control"] = {"type": "ephemeral"}
