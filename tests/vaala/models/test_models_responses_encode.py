"""Encoding for the Responses API: legal whatever the messages hold, joinable, in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from vaala.models.base import (
    AssistantSaid,
    CallEnd,
    CallPart,
    CallResult,
    CallStart,
    Message,
    ModelFailure,
    ModelRequest,
    ProviderBlob,
    ReasoningPart,
    TextDelta,
    ToolSpec,
    UserSaid,
)
from vaala.models.failures import Origin
from vaala.models.responses.decode import ResponsesDecoder
from vaala.models.responses.encode import (
    Asked,
    Author,
    encode_messages,
    request_body,
    without_replay,
)
from vaala.models.tool_names import names_of, wire_name
from vaala.models.wire import call_id
from vaala.testing.provider_chat import call
from vaala.testing.provider_responses import FakeItem, answer, function_call, message, reasoning
from vaala_protocol.content import FileContent, ImageContent, TextContent
from vaala_protocol.ids import new_id
from vaala_protocol.items import Private

ROOT = Path(__file__).parent / "recordings" / "responses"
ME = Author("openai", "responses", "openai/gpt-5.5")
EMPTY = ModelRequest("", (), b"", ())


def items_of(messages: list[Message], author: Author | None = ME) -> list[dict[str, Any]]:
    return list(json.loads(b"[" + encode_messages(messages, author) + b"]"))


def said(*texts: str) -> UserSaid:
    return UserSaid(tuple(TextContent(text=text) for text in texts))


def body(request: ModelRequest, asked: Asked | None = None) -> dict[str, Any]:
    return dict(json.loads(request_body(request, "gpt-5.5", ME, asked or Asked())))


def as_kept(pieces: list[bytes], author: Author = ME) -> AssistantSaid:
    """Return an answer as the log has it: its private data with the part that it belongs to."""
    decoder = ResponsesDecoder(Origin("x"))
    events = [event for piece in pieces for event in decoder.feed(piece)] + [*decoder.end()]
    private: dict[str | int, Private] = {}
    for event in events:
        if isinstance(event, ProviderBlob):
            private[event.part] = Private(
                provider=author.provider, api=author.api, model=author.model, data=event.data
            )
    names = [event.name for event in events if isinstance(event, CallStart)]
    ends = [event.arguments for event in events if isinstance(event, CallEnd)]
    calls = tuple(
        CallPart(f"ours-{index}", name, arguments, private.get(index))
        for index, (name, arguments) in enumerate(zip(names, ends, strict=True))
    )
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return AssistantSaid(text, (), calls, private.get("message"))


def kept(*items: FakeItem, author: Author = ME, **fields: Any) -> AssistantSaid:
    pieces = answer(*items, **fields).body
    return as_kept([piece for piece in pieces if isinstance(piece, bytes)], author)


def kinds(items: list[dict[str, Any]]) -> list[str]:
    return [str(item.get("type", item.get("role"))) for item in items]


def test_user() -> None:
    image = ImageContent(blob="1", media_type="image/png", size_bytes=5)
    file = FileContent(name="a.pdf", blob="2", media_type="application/pdf", size_bytes=7)
    blank = TextContent(text="\u200b")  # A4-4
    (item,) = items_of([UserSaid((TextContent(text="see"), blank, image, file))])
    assert item == {
        "role": "user",
        "content": "see\n\n[an image, image/png, 5 bytes: not shown here]"
        "\n\n[the file a.pdf, application/pdf, 7 bytes: not shown here]",
    }


def test_an_answer_of_somebody_else() -> None:
    answer_ = AssistantSaid("so", (ReasoningPart("never sent"),), (CallPart("x", "read", "{}"),))
    assert items_of([answer_, CallResult("x", "read", ())]) == [
        {"role": "assistant", "content": "so"},
        {"type": "function_call", "call_id": call_id("x"), "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id("x"), "output": "(no output)"},
    ]


def test_blank_text_beside_a_call_is_left_out() -> None:  # A4-2
    answer_ = AssistantSaid("\n\u200b", calls=(CallPart("x", "read", ""),))
    assert kinds(items_of([answer_])) == ["function_call"]
    assert items_of([AssistantSaid(" ")]) == [{"role": "assistant", "content": "(nothing)"}]


@pytest.mark.parametrize(
    "arguments", ["", " ", '{"path":"a', "[1]", "None", "[" * 50_000, '{"a":"\ud800"}']
)
def test_arguments_in_the_history_are_always_an_object(arguments: str) -> None:  # A2-4 A2-5
    (item,) = items_of([AssistantSaid("", calls=(CallPart("x", "read", arguments),))])
    assert isinstance(json.loads(item["arguments"]), dict)


def test_what_a_server_accepted_is_what_we_send() -> None:
    recorded = json.loads((ROOT / "reasoning-interleaved-2.input.json").read_text("utf-8"))
    first = as_kept([(ROOT / "reasoning-interleaved-1.json").read_bytes()])
    result = CallResult("ours-0", "db_lookup", (TextContent(text=recorded[3]["output"]),))
    sent = items_of([said(recorded[0]["content"]), first, result])
    for item in (*recorded, *sent):
        if "call_id" in item:
            item["call_id"] = ""
        if "arguments" in item:
            item["arguments"] = json.loads(item["arguments"])
    assert sent == recorded


def test_reasoning_of_deepseek_goes_back_as_it_came() -> None:
    (first, second) = items_of([as_kept([(ROOT / "deepseek-tool.sse").read_bytes()])])
    assert first == {
        "type": "reasoning",
        "id": "fa6f3a83-5d25-46e8-9d03-1a89ce5cf2ba",
        "summary": [],
        "content": [
            {
                "type": "reasoning_text",
                "text": "The user asks about temperature in Tokyo. I'll call the tool.",
            }
        ],
    }
    assert second["type"] == "function_call"
    assert "id" not in second


def test_the_order_of_an_answer_is_kept() -> None:
    answer_ = kept(
        reasoning("why", id="rs_1"),
        message("let me see", id="msg_1", phase="commentary"),
        reasoning(id="rs_2"),
        function_call(call("f", call_id="a", x=1)),
        function_call(call("g", call_id="b", x=2)),
        message("done", id="msg_2", phase="final_answer"),
    )
    sent = items_of([answer_])
    assert kinds(sent) == [
        "reasoning", "message", "reasoning", "function_call", "function_call", "message",
    ]  # fmt: skip
    assert sent[1] == {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "let me see", "annotations": []}],
        "phase": "commentary",
    }
    assert [sent[3]["name"], sent[4]["name"]] == ["f", "g"]
    assert sent[5]["content"][0]["text"] == "done"


@pytest.mark.parametrize(
    "author",
    [
        Author("azure", "responses", "openai/gpt-5.5"),
        Author("openai", "chat", "openai/gpt-5.5"),
        Author("openai", "responses", "openai/gpt-5.4"),
    ],
)
def test_reasoning_of_another_model_is_left_out(author: Author) -> None:  # B5-1 B5-2 B5-3
    answer_ = kept(reasoning("why"), message("hi"), author=author)
    assert items_of([answer_]) == [{"role": "assistant", "content": "hi"}]
    assert kinds(items_of([answer_], author)) == ["reasoning", "message"]


def test_reasoning_without_a_content_of_its_own_is_left_out() -> None:
    answer_ = kept(reasoning("why", encrypted=""), message("hi", phase="final_answer"))
    assert kinds(items_of([answer_])) == ["message"]
    assert kept(reasoning("why", encrypted=""), message("hi")).private is None


def test_no_orphan_reasoning() -> None:
    search = FakeItem({"id": "ws_1", "type": "web_search_call", "status": "completed"})
    before_search = kept(reasoning(id="r1"), search, reasoning(id="r2"), message("hi"))
    assert [item["id"] for item in items_of([before_search])] == ["r2", "msg_fake"]
    details = {"reason": "max_output_tokens"}
    last = kept(message("hi"), reasoning(), status="incomplete", incomplete_details=details)
    assert kinds(items_of([last])) == ["message"]
    gap = kept(reasoning(id="r1"), reasoning(id="r2", encrypted=""), message("hi"))
    assert kinds(items_of([gap])) == ["message"]
    both = kept(reasoning(id="r1"), reasoning(id="r2"), message("hi"))
    assert kinds(items_of([both])) == ["reasoning", "reasoning", "message"]
    blank = kept(reasoning(id="r1"), message("\n"), function_call(call("f")))
    assert kinds(items_of([blank])) == ["function_call"]
    anonymous = kept(reasoning(), FakeItem(message("hi").item | {"id": None}))
    assert items_of([anonymous]) == [{"role": "assistant", "content": "hi"}]


def test_an_answer_that_was_changed_goes_without_its_reasoning() -> None:
    answer_ = kept(reasoning(), message("hi"), function_call(call("f")))
    plain = ["assistant", "function_call"]
    assert kinds(items_of([replace(answer_, text="hi there")])) == plain
    assert kinds(items_of([replace(answer_, text="h")])) == plain
    assert kinds(items_of([replace(answer_, calls=())])) == ["assistant"]
    assert kinds(items_of([replace(answer_, calls=answer_.calls * 2)])) == [*plain, plain[1]]
    assert kinds(items_of([replace(answer_, text="")])) == ["function_call"]


def test_without_replay_nothing_is_left_of_it() -> None:
    answer_ = kept(reasoning(), message('a "id": b', phase="commentary"), function_call(call("f")))
    encoded = encode_messages([said('"type":"reasoning"'), answer_], ME)
    left = json.loads(b"[" + without_replay(encoded) + b"]")
    assert left[0] == {"role": "user", "content": '"type":"reasoning"'}
    assert left[1] == {"role": "assistant", "content": 'a "id": b', "phase": "commentary"}
    assert kinds(left[2:]) == ["function_call"]
    request = replace(EMPTY, history=encoded, messages=(answer_,))
    assert kinds(body(request, Asked(replay=False))["input"]) == [
        "user", "assistant", "function_call", "assistant", "function_call",
    ]  # fmt: skip


def test_a_step_that_stands_there_twice_has_its_ids_once() -> None:
    said_ = kept(reasoning(id="r1"), reasoning(id="r2"), message("hi", id="msg_1"))
    half = kept(reasoning(id="r3"), reasoning(id="r2"), message("ho", id="msg_2"))
    called = kept(reasoning(id="r4"), function_call(call("f")))
    again = replace(called, calls=(replace(called.calls[0], id="again"),))
    request = replace(EMPTY, history=encode_messages([said_, called], ME))
    once = body(replace(request, messages=(said("on"),)))["input"]
    assert once[:-1] == items_of([said_, called])
    twice = body(replace(request, messages=(said_, again, half, said("on"))))["input"]
    assert twice[:5] == once[:5]
    assert kinds(twice[5:]) == ["assistant", "function_call", "assistant", "user"]


@pytest.mark.parametrize("name", ["a.b/c", "", "x" * 80, "读", "\ud800", "a b"])
def test_names_are_legal_distinct_and_come_back(name: str) -> None:  # B7-3
    legal = wire_name(name)
    assert legal == wire_name(name)
    assert 1 <= len(legal) <= 64
    assert set(legal) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert names_of([ToolSpec(name, "", {})])[legal] == name
    assert legal not in {wire_name(other) for other in ("a_b_c", "x" * 64, "_", "a_b", "??")}


def test_body_without_anything() -> None:  # B7-4
    assert body(EMPTY, Asked(encrypted=False, summary=False)) == {
        "model": "gpt-5.5",
        "input": [],
        "stream": True,
        "store": False,
    }


def test_body_with_everything() -> None:
    request = replace(
        EMPTY,
        instructions="rules",
        tools=(ToolSpec("f", "Do it.", {"type": "object", "properties": {}}),),
        history=encode_messages([said("one")]),
        messages=(said("two"),),
        effort="high",
        output_tokens_max=7,
        options={"temperature": 0.5, "reasoning": {"summary": "detailed"}, "include": ["x"]},
    )
    assert body(request) == {
        "model": "gpt-5.5",
        "input": [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}],
        "stream": True,
        "store": False,
        "instructions": "rules",
        "tools": [
            {
                "type": "function",
                "name": "f",
                "strict": False,
                "description": "Do it.",
                "parameters": {"type": "object", "properties": {}},
            }
        ],
        "temperature": 0.5,
        "reasoning": {"effort": "high", "summary": "detailed"},
        "include": ["x", "reasoning.encrypted_content"],
        "max_output_tokens": 16,
    }


def test_reserved_options_are_refused() -> None:
    with pytest.raises(ModelFailure, match="cannot set previous_response_id, store") as caught:
        body(replace(EMPTY, options={"store": True, "previous_response_id": "x"}))
    assert caught.value.kind == "invalid_request"


def test_two_tools_of_one_name_and_too_many() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    tools = [ToolSpec("f", text, schema) for text in ("first", "second")]
    assert [one["description"] for one in body(replace(EMPTY, tools=tuple(tools)))["tools"]] == [
        "first"
    ]
    many = tuple(ToolSpec(f"f{number}", " ", schema) for number in range(200))
    sent = body(replace(EMPTY, tools=many))["tools"]
    assert len(sent) == 128
    assert "description" not in sent[0]


# Any sequence of messages gives a valid request: the rules that a server holds against `input`.

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def check_input(items: list[dict[str, Any]]) -> None:
    for place, item in enumerate(items):
        match item:
            case {"role": "user" | "assistant", "content": str(content), **rest}:
                assert content.strip()
                assert set(rest) <= {"phase"}
            case {"type": "message", "id": str(id_), "content": [{"text": str(content)}]}:
                assert id_
                assert content.strip()
            case {"type": "function_call", "call_id": str(id_), "name": str(name), **rest}:
                assert len(id_) <= 64
                assert set(id_) <= _LEGAL
                assert 1 <= len(name) <= 64
                assert set(name) <= _LEGAL
                assert isinstance(json.loads(rest["arguments"]), dict)
                assert set(rest) == {"arguments"}
            case {"type": "function_call_output", "call_id": str(), "output": str(output)}:
                assert output.strip()
            case {"type": "reasoning", "summary": list(), **rest}:
                assert rest["id"]
                assert rest.get("encrypted_content") or rest.get("content")
                follows = items[place + 1]
                assert follows["type"] in ("reasoning", "message", "function_call")
            case _:
                raise AssertionError(item)


_TEXT = st.text(max_size=6) | st.sampled_from(["", " \n", "\u200b", "\ud800", "\0", "ok"])
_CONTENT = st.lists(
    st.builds(lambda text: TextContent(text=text), _TEXT)
    | st.just(ImageContent(blob="b", media_type="image/png", size_bytes=3))
    | st.just(FileContent(name="\ud800", blob="b", media_type="x/y", size_bytes=3)),
    max_size=3,
).map(tuple)
_ENTRY = st.fixed_dictionaries(
    {"type": st.sampled_from(["reasoning", "message", "function_call", "other", 3])},
    optional={
        "id": _TEXT | st.integers(),
        "index": st.integers(-1, 3) | st.just("0") | st.booleans(),
        "start": st.integers(-1, 6),
        "end": st.integers(-1, 9) | st.none(),
        "phase": st.sampled_from(["commentary", [], 1]),
        "encrypted_content": st.sampled_from(["gAAA", "", None, {}]),
        "summary": st.sampled_from([[], None, [{"type": "summary_text", "text": "s"}], [1]]),
        "content": st.sampled_from([[], "x", [{"type": "reasoning_text", "text": "r"}]]),
    },
)
_DATA = st.fixed_dictionaries({}, optional={"output": st.lists(_ENTRY, max_size=5) | st.text()})
_PRIVATE = st.none() | st.builds(
    lambda data, model: Private(provider="openai", api="responses", model=model, data=data),
    _DATA,
    st.sampled_from([ME.model, ME.model, "openai/other"]),
)
_CALL = st.builds(CallPart, _TEXT, _TEXT, _TEXT | st.just('{"a":1}'), _PRIVATE)
_REAL = st.lists(
    st.sampled_from(
        [
            reasoning(id="r1"), reasoning("s", encrypted=""), reasoning("s", content="c"),
            message("hi"), message(" "), function_call(call("f", call_id="a", x=1)),
            FakeItem({"type": "web_search_call", "id": "w"}),
        ]
    ),
    min_size=1,
    max_size=5,
).map(lambda items: kept(*items))  # fmt: skip


@st.composite
def _damaged(draw: st.DrawFn) -> AssistantSaid:
    """Return an answer whose private data has lost fields, as a damaged log may have it."""
    answer_ = draw(_REAL)
    private = answer_.private or (answer_.calls[0].private if answer_.calls else None)
    if private is None:
        return answer_
    entries = [dict(entry) for entry in private.data["output"]]
    for entry in entries:
        for key in draw(st.lists(st.sampled_from(sorted(entry)), max_size=1)):
            del entry[key]
    return replace(answer_, private=replace(private, data={"output": entries}))


_MESSAGE = st.one_of(
    st.builds(UserSaid, _CONTENT),
    st.builds(AssistantSaid, _TEXT, st.just(()), st.lists(_CALL, max_size=3).map(tuple), _PRIVATE),
    _REAL,
    _damaged(),
    st.builds(CallResult, _TEXT, _TEXT, _CONTENT, st.booleans()),
)


def test_private_data_that_lost_a_field_gives_a_valid_request() -> None:
    whole = kept(reasoning("s", content="c"), message("hi"), function_call(call("f")))
    assert whole.private is not None
    entries: list[dict[str, Any]] = whole.private.data["output"]
    for place, entry in enumerate(entries):
        for key in entry:
            lost = {name: value for name, value in entry.items() if name != key}
            output = [*entries[:place], lost, *entries[place + 1 :]]
            private = replace(whole.private, data={"output": output})
            sent = items_of([replace(whole, private=private)])
            check_input(sent)
            assert kinds(sent)[-1] == "function_call"


@given(st.lists(_MESSAGE, max_size=5))
def test_any_messages_give_a_valid_request(messages: list[Message]) -> None:
    request = replace(EMPTY, history=encode_messages(messages, ME), messages=tuple(messages))
    for asked in (Asked(), Asked(replay=False)):
        sent = body(request, asked)["input"]
        check_input(sent)
        if not asked.replay:
            assert not any(item.get("type") in ("reasoning", "message") for item in sent)


@given(st.lists(_MESSAGE, max_size=6), st.integers(0, 6))
def test_encoding_is_local(messages: list[Message], cut: int) -> None:
    pieces = [encode_messages(messages[:cut], ME), encode_messages(messages[cut:], ME)]
    assert b",".join(piece for piece in pieces if piece) == encode_messages(messages, ME)


def test_ids_of_calls_are_ours() -> None:  # B5-4
    ours = new_id()
    (sent,) = items_of([AssistantSaid("", calls=(CallPart(ours, "f", "{}"),))])
    assert sent["call_id"] == f"call_{ours.replace('-', '')}"
