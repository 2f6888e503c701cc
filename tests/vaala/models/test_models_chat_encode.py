"""Encoding for chat completions: legal whatever the messages hold, joinable, a copy of bytes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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
from vaala.models.chat.encode import Dialect, encode_messages, request_body
from vaala.models.wire import call_id
from vaala_protocol.content import FileContent, ImageContent, TextContent
from vaala_protocol.ids import new_id

EMPTY = ModelRequest("", (), b"", ())


def one(message: Message) -> dict[str, Any]:
    (value,) = json.loads(b"[" + encode_messages([message]) + b"]")
    return dict(value)


def said(*texts: str) -> UserSaid:
    return UserSaid(tuple(TextContent(text=text) for text in texts))


def body(request: ModelRequest, field: str = "max_tokens") -> dict[str, Any]:
    encoded = request_body(request, "m", Dialect(field))
    return dict(json.loads(encoded))


def test_user() -> None:
    assert one(said("a", " ", "b")) == {"role": "user", "content": "a\n\nb"}


def test_images_and_files_become_notes() -> None:
    image = ImageContent(blob="1", media_type="image/png", size_bytes=5)
    file = FileContent(name="a.pdf", blob="2", media_type="application/pdf", size_bytes=7)
    assert one(UserSaid((TextContent(text="see"), image, file)))["content"] == (
        "see\n\n[an image, image/png, 5 bytes: not shown here]"
        "\n\n[the file a.pdf, application/pdf, 7 bytes: not shown here]"
    )


def test_assistant_with_calls() -> None:
    calls = (CallPart("x", "read_file", '{"path":"a"}'),)
    message = AssistantSaid("so", (ReasoningPart("never sent"),), calls)
    assert one(message) == {
        "role": "assistant",
        "content": "so",
        "tool_calls": [
            {
                "id": call_id("x"),
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path":"a"}'},
            }
        ],
    }


def test_blank_text_beside_a_call_is_left_out() -> None:  # A4-2
    assert one(AssistantSaid("\n\n", calls=(CallPart("x", "read", "{}"),)))["content"] is None


def test_a_result_is_never_empty() -> None:
    assert one(CallResult("x", "read", ())) == {
        "role": "tool",
        "tool_call_id": call_id("x"),
        "content": "(no output)",
    }


@pytest.mark.parametrize(
    "arguments",
    ["", " ", '{"path":"a', "[1]", "None", '{"a":NaN}', "[" * 50_000, '{"a":"\ud800"}'],
)
def test_arguments_in_the_history_are_always_an_object(arguments: str) -> None:  # A2-4 A2-5
    message = one(AssistantSaid("", calls=(CallPart("x", "read", arguments),)))
    value = json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert isinstance(value, dict)
    assert (value == {}) == (not arguments.strip())


ODD_NAMES = ["a.b/c", "a b/c", "caf\u00e9", "", "x" * 80, "x" * 99, "\u8bfb", "a_b_c", "read"]


def test_names_are_legal_distinct_and_the_same_in_history_and_tools() -> None:  # B7-3
    called = [
        one(AssistantSaid("", calls=(CallPart("x", name, "{}"),)))["tool_calls"][0]["function"]
        for name in ODD_NAMES
    ]
    names = [function["name"] for function in called]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert len(set(names)) == len(names)
    assert names[-2:] == ["a_b_c", "read"]
    tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in ODD_NAMES)
    assert [
        tool["function"]["name"] for tool in body(ModelRequest("", tools, b"", ()))["tools"]
    ] == names


def test_ids_are_short_stable_and_distinct() -> None:  # A3-3 B5-4
    ours = [new_id() for _ in range(100)] + ["", "x" * 60, "toolu_1", "y" * 32]
    ids = [call_id(one) for one in ours]
    assert len(set(ids)) == len(ours)
    assert max(map(len, ids)) <= 40
    assert ids == [call_id(one) for one in ours]
    assert call_id(ours[0]) == f"call_{ours[0].replace('-', '')}"


def test_lone_surrogates_do_not_stop_a_request() -> None:
    assert one(said("a\ud800b"))["content"] == "a\ufffdb"
    assert body(replace(EMPTY, instructions="\udfff"))["messages"][0]["content"] == "\ufffd"


def test_body_without_anything() -> None:  # B7-4
    assert body(EMPTY) == {
        "model": "m",
        "messages": [],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_body_with_everything() -> None:
    request = replace(
        EMPTY,
        instructions="rules",
        history=encode_messages([said("one")]),
        messages=(said("two"),),
        effort="high",
        output_tokens_max=7,
        options={"temperature": 0.5},
    )
    fields = body(request, "max_completion_tokens")
    assert [message["content"] for message in fields["messages"]] == ["rules", "one", "two"]
    assert (fields["reasoning_effort"], fields["temperature"]) == ("high", 0.5)
    assert fields["max_completion_tokens"] == 7
    usage = request_body(request, "m", Dialect(usage_asked=False))
    assert "stream_options" not in json.loads(usage)


def test_reserved_options_are_refused() -> None:
    with pytest.raises(ModelFailure, match="cannot set stream, tools") as caught:
        body(replace(EMPTY, options={"tools": [], "stream": False}))
    assert caught.value.kind == "invalid_request"


_MESSAGE = st.one_of(
    st.builds(said, st.text(min_size=1)),
    st.builds(AssistantSaid, st.text(min_size=1)),
    st.builds(CallResult, st.text(), st.text(), st.just((TextContent(text="x"),))),
)


@given(st.lists(_MESSAGE, max_size=6), st.integers(0, 6))
def test_encoding_is_local(messages: list[Message], cut: int) -> None:
    pieces = [encode_messages(messages[:cut]), encode_messages(messages[cut:])]
    assert b",".join(piece for piece in pieces if piece) == encode_messages(messages)
