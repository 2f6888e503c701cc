"""Requests of the Messages API: legal whatever the messages hold, and found again in the cache."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.vaala.models.anthropic_checker import complaints
from vaala.models.anthropic.encode import encode_messages, joined
from vaala.models.anthropic.replay import Owner
from vaala.models.anthropic.request import Target, request_body
from vaala.models.anthropic.schema import input_schema
from vaala.models.anthropic.thinking import output_tokens, thinking_of
from vaala.models.base import (
    AssistantSaid,
    CallPart,
    CallResult,
    Message,
    ModelFailure,
    ModelRequest,
    ReasoningPart,
    ToolSpec,
    UserSaid,
)
from vaala.models.tool_names import wire_name
from vaala_protocol.content import Content, FileContent, ImageContent, TextContent
from vaala_protocol.items import Private

NEW, OLD = "claude-opus-5-5", "claude-sonnet-4-5"
OWNER = Owner("anthropic", f"anthropic/{NEW}")
TOOL = ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {}})


def target(model: str = NEW) -> Target:
    return Target(Owner("anthropic", f"anthropic/{model}"), model)


def said(*words: str) -> UserSaid:
    return UserSaid(tuple(TextContent(text=word) for word in words))


def result(id: str, text: str = "ok", *, is_error: bool = False) -> CallResult:
    return CallResult(id, "f", (TextContent(text=text),), is_error)


def request(*messages: Message, history: bytes = b"", **more: Any) -> ModelRequest:
    given = ModelRequest("Be brief.", (TOOL,), history, messages)
    return replace(given, **more)


def body(asked: ModelRequest, model: str = NEW) -> dict[str, Any]:
    data = request_body(asked, target(model)).data
    assert complaints(data) == []
    found: dict[str, Any] = json.loads(data)
    return found


def private(data: dict[str, Any], owner: Owner = OWNER, api: str = "anthropic") -> Private:
    return Private(provider=owner.provider, api=api, model=owner.model, data=data)


def layout(*entries: dict[str, Any], thoughts: str = "") -> dict[str, Any]:
    return {"blocks": list(entries), "crc": zlib.crc32(thoughts.encode())}


def test_a_request() -> None:
    reads = (CallPart("1" * 32, "read_file", '{"p": 1}'),)
    refused = result("1" * 32, "no", is_error=True)
    asked = request(said("Read a."), AssistantSaid("Yes.", calls=reads), refused)
    mark = {"type": "ephemeral"}
    assert body(asked, OLD) == {
        "model": OLD,
        "max_tokens": 64_000,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "tools": [
            {
                "name": "read_file",
                "description": "Read a file.",
                "input_schema": {"type": "object", "properties": {}},
                "eager_input_streaming": True,
                "cache_control": mark,
            }
        ],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Read a.", "cache_control": mark}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Yes."},
                    {
                        "type": "tool_use",
                        "id": f"call_{'1' * 32}",
                        "name": "read_file",
                        "input": {"p": 1},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": f"call_{'1' * 32}",
                        "content": [{"type": "text", "text": "no"}],
                        "is_error": True,
                        "cache_control": mark,
                    }
                ],
            },
        ],
    }
    assert "tools" not in body(replace(asked, tools=()))  # B7-4
    assert "system" not in body(replace(asked, instructions=" "))


def test_results_stand_in_one_message_before_what_is_said_next() -> None:
    calls = tuple(CallPart(str(number), "f", "{}") for number in range(3))
    results = [result(call.id) for call in calls]
    asked = request(
        said("go"), AssistantSaid("", calls=calls), *results, said("and"), said("hurry")
    )
    found = body(asked)["messages"]
    assert [len(message["content"]) for message in found] == [1, 3, 5]
    kinds = [block["type"] for block in found[2]["content"]]
    assert kinds == ["tool_result"] * 3 + ["text"] * 2


def test_a_seam_is_no_seam_inside_of_a_value() -> None:
    seam = ']},{"role":"user", "content":['
    arguments = json.dumps({"messages": [{"a": [1]}, {"role": "user", "content": [seam]}]})
    shaped = arguments.replace('": ', '":').replace("}, ", "},")
    answer = AssistantSaid(seam, calls=(CallPart("1", "f", shaped),))
    found = body(request(said(seam), answer, result("1", seam)))["messages"]
    assert found[1]["content"][1]["input"] == json.loads(shaped)
    assert found[0]["content"][0]["text"] == seam


def marked(found: dict[str, Any]) -> list[tuple[int, int]]:
    return [
        (number, place)
        for number, message in enumerate(found["messages"])
        for place, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def unmarked(messages: Any) -> Any:
    text = json.dumps(messages)
    return json.loads(text.replace(', "cache_control": {"type": "ephemeral"}', ""))


def test_a_growing_conversation_is_marked_where_it_ended_before() -> None:
    """The mark of a request is again in the next one, with the same bytes before it, also after
    an answer of so many calls that a server would not look back to it."""
    messages: list[Message] = [said("go")]
    before: dict[str, Any] | None = None
    for step in range(4):
        found = body(request(*messages))
        if before is not None:
            end = marked(before)[-1]
            assert end in marked(found)
            assert unmarked(found["messages"])[: end[0] + 1] == unmarked(before["messages"])
        before = found
        ids = [f"{step}-{number}" for number in range(25)]
        calls = tuple(CallPart(id, "f", "{}") for id in ids)
        messages += [AssistantSaid("", calls=calls), *map(result, ids)]
    assert len(marked(before or {})) == 2


def test_marks_do_not_depend_on_what_is_history() -> None:
    calls = (CallPart("1", "f", "{}"), CallPart("2", "f", "{}"))
    answer = AssistantSaid("", calls=calls)
    messages: list[Message] = [said("go"), answer, result("1"), result("2"), said("so")]
    whole = request_body(request(*messages), target()).data
    for cut in range(len(messages) + 1):
        history = encode_messages(messages[:cut], OWNER)
        assert request_body(request(*messages[cut:], history=history), target()).data == whole


THOUGHT = {"thinking": 2, "signature": "s"}
HM = (ReasoningPart("hm"),)
CALL = (CallPart("1", "f", "{}"),)


def answer_blocks(answer: AssistantSaid, model: str = NEW) -> list[dict[str, Any]]:
    results: list[Message] = [result(call.id) for call in answer.calls]
    results = results or [said("so")]
    found = body(request(said("go"), answer, *results), model)["messages"][1]["content"]
    assert isinstance(found, list)
    return found


def test_thoughts_go_back_where_they_stood() -> None:
    data = layout({"text": 2}, THOUGHT, {"text": 2}, {"call": 0}, thoughts="hm")
    blocks = answer_blocks(AssistantSaid("abcd", HM, CALL, private(data)))
    assert [block["type"] for block in blocks] == ["text", "thinking", "text", "tool_use"]
    assert blocks[1] == {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert (blocks[0]["text"], blocks[2]["text"]) == ("ab", "cd")
    redacted = {"block": {"type": "redacted_thinking", "data": "x"}}
    kept = (replace(CALL[0], private=private(layout(redacted, {"call": 0}))),)
    assert answer_blocks(AssistantSaid("", calls=kept))[0] == redacted["block"]


def test_thoughts_without_text_go_back_too() -> None:
    data = layout({"thinking": 0, "signature": "s"}, {"call": 0})
    blocks = answer_blocks(AssistantSaid("", calls=CALL, private=private(data)))
    assert blocks[0] == {"type": "thinking", "thinking": "", "signature": "s"}


def test_a_blank_text_between_is_left_out() -> None:  # A4-2 A4-4
    data = layout({"text": 3}, THOUGHT, {"call": 0}, thoughts="hm")
    for text in ("", "\n\u200b\ufeff"):
        blocks = answer_blocks(AssistantSaid(text, HM, CALL, private(data)))
        assert [block["type"] for block in blocks] == ["thinking", "tool_use"]


GOOD = layout(THOUGHT, {"call": 0}, thoughts="hm")
UNSIGNED = {"thinking": 2, "signature": ""}
OTHERS = {
    "another model": private(GOOD, target(OLD).owner),
    "another provider": private(GOOD, Owner("p", OWNER.model)),
    "another api": private(GOOD, api="chat"),
    "other thoughts": private(layout(THOUGHT, {"call": 0}, thoughts="mh")),
    "a call too many": private(layout(THOUGHT, {"call": 0}, {"call": 1}, thoughts="hm")),
    "a call too few": private(layout(THOUGHT, thoughts="hm")),
    "an end with a thought": private(layout({"text": 1}, {"call": 0}, THOUGHT, thoughts="hm")),
    "no signature": private(layout({"text": 1}, UNSIGNED, {"call": 0}, thoughts="hm")),
    "garbage": private({"blocks": [1, {"x": 2}], "crc": zlib.crc32(b"hm")}),
    "sizes beyond all memory": private(layout({"text": 2**60}, THOUGHT, {"call": 0})),
    "nothing": None,
}


@pytest.mark.parametrize("kept", OTHERS.values(), ids=OTHERS.keys())
def test_what_does_not_belong_to_the_answer_is_left_out(kept: Private | None) -> None:  # B5-1 B5-2
    blocks = answer_blocks(AssistantSaid("x", HM, CALL, kept))
    assert [block["type"] for block in blocks] == ["text", "tool_use"]


def test_thoughts_of_a_server_that_does_not_sign() -> None:
    owner = Owner("local", "local/qwen3")
    data = layout({"thinking": 2, "signature": ""}, {"call": 0}, thoughts="hm")
    answer = AssistantSaid("", HM, CALL, private(data, owner))
    (found,) = json.loads(b"[" + encode_messages([answer], owner) + b"]")
    assert found["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


LOW = {"thinking": {"type": "enabled", "budget_tokens": 4_096}}
EFFORTS: list[tuple[str, str | None, dict[str, Any]]] = [
    ("claude-3-5-haiku-20241022", "high", {}),
    ("claude-3-7-sonnet-20250219", "low", LOW),
    (OLD, None, {}),
    (OLD, "none", {}),
    (OLD, "max", {"thinking": {"type": "enabled", "budget_tokens": 48_000}}),
    ("claude-opus-4-20250514", "max", {"thinking": {"type": "enabled", "budget_tokens": 30_976}}),
    ("claude-opus-4-6", None, {}),
    ("claude-opus-4-6", "xhigh", {"effort": "high"}),  # it has low, medium, high, max
    ("claude-opus-4-7", "xhigh", {"effort": "xhigh"}),
    ("claude-opus-4-7", "off", {}),
    (NEW, "minimal", {"effort": "low"}),
    (NEW, "off", {"effort": "low"}),  # it cannot be told not to think
    (NEW, None, {"thinking": {"type": "adaptive", "display": "summarized"}}),
    ("claude-mythos-preview", "max", {"effort": "max"}),
    ("anthropic/claude-sonnet-4.5", "low", LOW),
    ("glm-5", "high", {}),  # 8,192 tokens leave no room for more than the answer and 7,168
    ("glm-5", None, {}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "effort", "fields"), EFFORTS)
def test_efforts(model: str, effort: str | None, fields: dict[str, Any]) -> None:
    found = thinking_of(model, effort, output_tokens(model, None)).fields
    if "effort" in fields:
        assert found["output_config"] == fields
        assert found["thinking"] == {"type": "adaptive", "display": "summarized"}
    elif model == "glm-5" and effort:
        assert found == {"thinking": {"type": "enabled", "budget_tokens": 7_168}}
    else:
        assert found == fields


def test_an_effort_that_means_nothing() -> None:
    with pytest.raises(ModelFailure, match="one of none, off, low, medium, high, xhigh, max"):
        thinking_of(OLD, "heroic", 64_000)
    assert thinking_of(NEW, "heroic", 64_000).fields["output_config"] == {"effort": "heroic"}


def test_an_answer_without_its_thought_is_gone_on_with_without_thinking() -> None:
    answer = AssistantSaid("", calls=CALL)
    asked = request(said("go"), answer, result("1"), effort="high")
    assert "thinking" not in body(asked, OLD)
    later = (said("go"), answer, result("1"), AssistantSaid("x"), said("y"))
    assert "thinking" in body(request(*later, effort="high"), OLD)
    owner = target(OLD).owner
    data = private(layout(THOUGHT, {"call": 0}, thoughts="hm"), owner)
    thought = AssistantSaid("", HM, CALL, data)
    assert "thinking" in body(request(said("go"), thought, result("1"), effort="high"), OLD)
    bare = (AssistantSaid("", calls=(CallPart("2", "f", "{}"),)), result("2"))
    for loop in ((thought, result("1"), *bare), (*bare, thought, result("1"))):
        asked = request(said("go"), *loop, effort="high")
        assert "thinking" not in body(asked, OLD), "of its calls the first and the newest count"


@pytest.mark.parametrize("effort", [None, "none", "high"])
def test_without_thinking_no_thought_of_the_open_answer_is_sent(effort: str | None) -> None:
    hidden = {"block": {"data": "d", "type": "redacted_thinking"}}
    data = private(layout(THOUGHT, hidden, {"call": 0}, thoughts="hm"), target(OLD).owner)
    whole = AssistantSaid("", HM, CALL, data)
    earlier = replace(whole, calls=(CallPart("9", "f", "{}"),))
    before = (said("go"), earlier, result("9", '] },{"role":"user"'), said('{"type":'))
    first = AssistantSaid("] }", calls=(CallPart("0", "f", '{"a":[{}]}'),))
    open_ = (first, result("0"), whole, result("1"))
    found = body(request(*before, *open_, effort=effort), OLD)
    assert "thinking" not in found
    kinds = [
        [block["type"] for block in message["content"]]
        for message in found["messages"]
        if message["role"] == "assistant"
    ]
    assert kinds == [
        ["thinking", "redacted_thinking", "tool_use"], ["text", "tool_use"], ["tool_use"],
    ]  # fmt: skip


def test_output_tokens() -> None:
    assert output_tokens("claude-3-haiku-20240307", None) == 4_096
    assert output_tokens("claude-opus-4-1-20250805", None) == 32_000
    assert output_tokens("local", 8_192) == 4_096
    asked = request(said("x"), output_tokens_max=77)
    assert body(asked)["max_tokens"] == 77
    assert body(replace(asked, options={"max_tokens": 5}))["max_tokens"] == 5


def test_an_answer_is_not_given_more_than_the_window_has_left() -> None:  # B9-2
    asked = request(said("x"), room_tokens=3_386)
    assert body(asked)["max_tokens"] == 3_386
    assert body(replace(asked, options={"max_tokens": 9_000}))["max_tokens"] == 3_386
    assert body(replace(asked, output_tokens_max=77))["max_tokens"] == 77


def test_options() -> None:
    schema = {"format": {"type": "json_schema", "schema": {}}}
    found = body(request(said("x"), effort="low", options={"output_config": schema, "top_k": 3}))
    assert found["output_config"] == {"effort": "low"} | schema
    assert found["top_k"] == 3
    with pytest.raises(ModelFailure, match="cannot set messages, system"):
        body(request(said("x"), options={"system": "y", "messages": []}))


def test_notes_stand_for_what_is_no_text() -> None:  # A4-3 B5-5
    image = ImageContent(blob="b", media_type="image/png", size_bytes=7)
    found = body(request(UserSaid((image,))))["messages"][0]["content"]
    assert [block["text"] for block in found] == ["[an image, image/png, 7 bytes: not shown here]"]


SCHEMAS: list[dict[str, Any]] = [
    {},
    {"anyOf": [{"required": ["a"]}], "properties": {"a": {"type": "string"}}},
    {"type": "object", "properties": {"a b": {}, "ok": {"$ref": "#/$defs/x"}},
     "required": ["a b", "ok"], "$defs": {"x": {"type": "array"}}},
    {"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": True,
                                            "minimum": 1, "default": float("inf")}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schemas_are_mended(schema: dict[str, Any]) -> None:  # B7-1 B7-2 B7-5
    tool = ToolSpec("f", "", schema)
    (found,) = body(request(said("x"), tools=(tool,)))["tools"]
    assert found["input_schema"]["type"] == "object"
    assert "description" not in found


def test_a_property_that_cannot_be_told_is_left_out() -> None:
    found = input_schema({"properties": {"a b": {}, "ok": {}}, "required": ["a b", "ok"]})
    assert (found["properties"], found["required"]) == ({"ok": {}}, ["ok"])
    data = {"properties": {"ok": {"enum": [{"properties": {"a b": 1}}]}}}
    assert input_schema(data)["properties"]["ok"]["enum"] == [{"properties": {"a b": 1}}]


ids = st.text(min_size=1, max_size=40)
texts = st.text(max_size=20) | st.sampled_from(
    ["", " \n", "\u200b", ']},{"role":"user", "content":[']
)
contents: st.SearchStrategy[tuple[Content, ...]] = st.lists(
    st.one_of(
        texts.map(lambda text: TextContent(text=text)),
        st.builds(ImageContent, blob=ids, media_type=texts, size_bytes=st.just(3)),
        st.builds(FileContent, name=texts, blob=ids, media_type=texts, size_bytes=st.just(3)),
    ),
    max_size=3,
).map(tuple)
arguments = texts | st.sampled_from(
    ["{}", '{"a": 1e999}', '{"a": [' * 90 + "]}" * 90, "[1]", '{"a": "\\ud800"}', '{"x": {"y": 2}}']
)
entries = st.one_of(
    st.integers(0, 3).map(lambda size: {"text": size}),
    st.builds(lambda size, s: {"thinking": size, "signature": s}, st.integers(0, 3), texts),
    st.integers(0, 2).map(lambda number: {"call": number}),
    st.just({"block": {"type": "redacted_thinking", "data": "x"}}),
)
datas = st.builds(
    lambda blocks, thoughts: layout(*blocks, thoughts=thoughts),
    st.lists(entries, max_size=5),
    st.sampled_from(["", "h", "hm"]),
) | st.dictionaries(st.sampled_from(["blocks", "crc"]), st.integers() | st.lists(st.none()))
privates = st.none() | st.builds(
    lambda data, owner, api: private(data, owner, api),
    datas,
    st.sampled_from([OWNER, target(OLD).owner, Owner("p", "p/m")]),
    st.sampled_from(["anthropic", "chat"]),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Whatever `vaala.agent.history` may give: a person first and last, results with their calls,
    no answer after an answer, no id twice."""
    messages: list[Message] = []
    known: set[str] = set()
    for _ in range(draw(st.integers(0, 4))):
        if not messages or isinstance(messages[-1], AssistantSaid) or draw(st.booleans()):
            messages += [UserSaid(draw(contents)) for _ in range(draw(st.integers(1, 2)))]
        fresh = [id for id in draw(st.lists(ids, max_size=3, unique=True)) if id not in known]
        known.update(fresh)
        calls = tuple(CallPart(id, draw(texts), draw(arguments), draw(privates)) for id in fresh)
        reasoning = draw(st.sampled_from([(), HM, (ReasoningPart("h"),)]))
        messages.append(AssistantSaid(draw(texts), reasoning, calls, draw(privates)))
        messages += [
            CallResult(id, draw(texts), draw(contents), draw(st.booleans())) for id in fresh
        ]
    if not messages or isinstance(messages[-1], AssistantSaid):
        messages.append(UserSaid(draw(contents)))
    return messages


def pieces_of(messages: Sequence[Message], cuts: Iterable[int]) -> Iterator[Sequence[Message]]:
    borders = [0, *sorted(cut % (len(messages) + 1) for cut in cuts), len(messages)]
    for begin, end in itertools.pairwise(borders):
        if begin < end:
            yield messages[begin:end]


tool_specs = st.lists(
    st.builds(ToolSpec, texts.filter(bool), texts, st.sampled_from(SCHEMAS)),
    max_size=3,
    unique_by=lambda tool: tool.name,
).map(tuple)


@settings(max_examples=80)
@given(
    conversations(), st.lists(st.integers(0, 30), max_size=3), tool_specs, texts,
    st.sampled_from([NEW, OLD, "claude-opus-4-6"]), st.sampled_from([None, "low", "max"]),
)  # fmt: skip
def test_any_conversation_is_a_legal_request_however_it_is_cut(
    messages: list[Message], cuts: list[int], tools: tuple[ToolSpec, ...], instructions: str,
    model: str, effort: str | None,
) -> None:  # fmt: skip
    to = target(model)
    whole = encode_messages(messages, to.owner)
    pieces = [encode_messages(piece, to.owner) for piece in pieces_of(messages, cuts)]
    assert b",".join(pieces) == whole
    asked = ModelRequest(instructions, tools, whole, (), effort)
    data = request_body(asked, to).data
    assert complaints(data) == []
    without = request_body(asked, replace(to, keep_thoughts=False))
    assert complaints(without.data) == []
    assert b'"thinking","thinking"' not in without.data
    assert {wire_name(tool.name): tool.name for tool in tools} == {
        name: tool.name
        for name, tool in zip(
            (one["name"] for one in json.loads(data).get("tools", ())), tools, strict=True
        )
    }


def test_a_long_history_costs_no_reading() -> None:
    """What has to be joined is found without reading each message again."""
    step: list[Message] = [said("x" * 400), AssistantSaid("y" * 400)]
    history = encode_messages(step * 2_000, OWNER)
    assert joined(history, b"") is history
