"""Decoding of Responses answers: recordings at every split, dialects, errors, garbage."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vaala.models.decoding import decoded
from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    Finish,
    FirstByte,
    ModelEvent,
    ModelFailure,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.failures import Origin, failure_of_status
from vaala.models.responses.decode import ResponsesDecoder
from vaala.testing.provider_chat import FakeCall, call
from vaala.testing.provider_responses import (
    answer,
    event,
    failed,
    function_call,
    message,
    reasoning,
    response,
    text,
    tool_calls,
    usage,
)
from vaala_protocol.settings import Usage

ROOT = Path(__file__).parent / "recordings" / "responses"
EXPECTED: dict[str, dict[str, Any]] = json.loads((ROOT / "expected.json").read_text("utf-8"))
RECORDED = [*EXPECTED, "llamacpp-tool.sse"]


def decode(
    pieces: Iterable[bytes], names: dict[str, str] | None = None
) -> tuple[list[ModelEvent], ModelFailure | None]:
    decoder = ResponsesDecoder(Origin("recorded"), names)
    return decoded(decoder, pieces)


def summary(pieces: Iterable[bytes], names: dict[str, str] | None = None) -> dict[str, Any]:
    events, failure = decode(pieces, names)
    starts = {one.index: one.name for one in events if isinstance(one, CallStart)}
    ends = {one.index: one.arguments for one in events if isinstance(one, CallEnd)}
    reports = [one.usage for one in events if isinstance(one, UsageReport)]
    finishes = [one for one in events if isinstance(one, Finish)]
    blobs = [one for one in events if isinstance(one, ProviderBlob)]
    return {
        "text": "".join(one.text for one in events if isinstance(one, TextDelta)),
        "reasoning": "".join(one.text for one in events if isinstance(one, ReasoningDelta)),
        "calls": [[starts[index], ends.get(index)] for index in sorted(starts)],
        "pieces": {
            index: "".join(d.arguments for d in events if isinstance(d, CallDelta))
            for index in starts
            if len(starts) == 1
        },
        "usage": reports[-1] if reports else None,
        "finish": finishes[-1] if finishes else None,
        "blobs": blobs,
        "failure": None if failure is None else (failure.kind, failure.retryable, failure.message),
    }


def said(*items: Any, **fields: Any) -> dict[str, Any]:
    return summary([piece for piece in answer(*items, **fields).body if isinstance(piece, bytes)])


def recorded(name: str) -> bytes:
    return (ROOT / name).read_bytes()


@pytest.mark.parametrize("name", RECORDED)
def test_every_split_gives_the_same(name: str) -> None:  # B1-1 B1-2
    body = recorded(name)
    whole = summary([body])
    assert whole["failure"] is None
    assert summary(body[at : at + 1] for at in range(len(body))) == whole
    if name.endswith(".sse"):
        assert summary([body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")]) == whole
        assert summary([b": ping\n\n" + body.replace(b"\n\n", b"\n\n:\n\n")]) == whole  # B1-3
    for seed in range(5):
        rng = random.Random(seed)
        cuts = sorted(rng.sample(range(len(body)), min(40, len(body) // 2)))
        borders = [0, *cuts, len(body)]
        assert summary(body[a:b] for a, b in itertools.pairwise(borders)) == whole


@pytest.mark.parametrize("name", EXPECTED)
def test_values_are_those_of_the_vendors_client(name: str) -> None:
    expected, ours = EXPECTED[name], summary([recorded(name)])
    assert ours["text"] == expected["text"]
    assert ours["calls"] == expected["calls"]
    assert ours["finish"] == Finish("tool_calls" if expected["calls"] else "stop", "completed")
    counts = expected["usage"]
    assert ours["usage"].total == counts["total_tokens"]
    assert ours["usage"].cache_read == counts["cached"]
    assert ours["usage"].input + counts["cached"] == counts["input_tokens"]
    assert ours["usage"].reasoning == counts["reasoning"]
    assert ours["usage"].output + counts["reasoning"] == counts["output_tokens"]


@pytest.mark.parametrize(
    ("name", "begins", "ends"),
    [
        ("deepseek-tool.sse", "The user asks", "call the tool."),
        ("openrouter-raw-cot.sse", 'The user asks: "What', "Just answer 4."),
        ("copilot-id-rotation.sse", "**Counting character", "occurrences**"),
        ("lmstudio-tool.sse", "The user is asking", "make the function call."),
    ],
)
def test_reasoning_of_the_dialects_is_given_once(name: str, begins: str, ends: str) -> None:
    shown = summary([recorded(name)])["reasoning"]
    assert shown.startswith(begins)
    assert shown.endswith(ends)
    assert shown.count(begins) == 1


@pytest.mark.parametrize("name", ["reasoning-interleaved-1.json", "reasoning-encrypted-1.json"])
def test_encrypted_reasoning_is_kept_byte_exact_with_the_call(name: str) -> None:
    item = json.loads(recorded(name))["output"][0]
    (blob,) = summary([recorded(name)])["blobs"]
    assert blob.part == 0
    assert blob.data == {"output": [item, {"type": "function_call", "index": 0}]}


def test_llama_cpp_has_no_output_index() -> None:
    ours = summary([recorded("llamacpp-tool.sse")])
    assert ours["calls"] == [["get_weather", '{\n\n"city": "Paris"\n}']]
    assert ours["pieces"] == {0: '{\n\n"city": "Paris"\n}'}
    assert ours["usage"] == Usage(input=91, cache_read=107, output=16)


def test_recorded_errors_have_their_kind() -> None:  # A7-4
    for name in ("err-400-reasoning-orphan.json", "err-400-model.json"):
        failure = failure_of_status(Origin("openai"), 400, {}, recorded(name))
        assert (failure.kind, failure.retryable) == ("invalid_request", False)


def test_a_stream_without_its_terminal_event_is_incomplete() -> None:  # B1-6
    body = recorded("text.sse")
    cut = body[: body.index(b"event: response.completed")]
    for rest in (b"", b"data: [DONE]\n\n"):
        ours = summary([cut, rest])
        assert ours["text"] == "pong"
        assert ours["finish"] is None
        assert ours["failure"] == (
            "incomplete", True, "recorded: the answer ended before it was complete"
        )  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"\n\n", b": ping\n\n", b"data: [DONE]\n\n"])
def test_an_empty_stream_is_an_error(body: bytes) -> None:  # B2-3
    assert summary([body])["failure"] == ("incomplete", True, "recorded: the answer was empty")


def test_the_end_without_a_blank_line_counts() -> None:
    assert summary([recorded("text.sse").rstrip()])["finish"] == Finish("stop", "completed")


def test_a_web_page_is_told_as_one() -> None:  # B2-4
    kind, retryable, told = summary([b"<html>log in</html>"])["failure"]
    assert (kind, retryable) == ("network", False)
    assert "web page" in told


ERRORS = [
    (b'{"type":"error","code":"rate_limit_exceeded","message":"slow"}', "rate_limit", True),
    (b'{"type":"error","error":{"type":"server_error","message":"x"}}', "overloaded", True),
    (b'{"error":{"code":500,"message":"boom"}}', "overloaded", True),
    (b'{"type":"error","code":"context_length_exceeded","message":"x"}', "context_overflow", False),
    (b"not json", "incomplete", True),
]


@pytest.mark.parametrize(("data", "kind", "retryable"), ERRORS)
def test_errors_inside_a_200(data: bytes, kind: str, retryable: bool) -> None:  # B2-1 B2-2
    begun = event("response.output_text.delta", output_index=0, delta="half")
    ours = summary([begun, b"event: error\ndata: " + data + b"\n\n"])
    assert ours["text"] == "half"
    assert ours["failure"][:2] == (kind, retryable)
    assert ours["finish"] is None


@pytest.mark.parametrize(
    ("code", "words", "kind", "retryable"),
    [
        ("server_error", "x", "overloaded", True),
        ("rate_limit_exceeded", "x", "rate_limit", True),
        ("invalid_prompt", "bad field", "invalid_request", False),
        ("invalid_prompt", "flagged as potentially violating", "refused", False),
        ("bio_policy", "no", "refused", False),
        ("image_too_large", "no", "invalid_request", False),
        ("context_length_exceeded", "x", "context_overflow", False),
        ("something_new", "x", "incomplete", True),
    ],
)
def test_failed_responses(code: str, words: str, kind: str, retryable: bool) -> None:
    body = [piece for piece in failed(code, words).body if isinstance(piece, bytes)]
    told = summary(body)["failure"]
    assert told[:2] == (kind, retryable)
    assert words in told[2]


def test_a_cancelled_response_is_incomplete() -> None:
    ours = said(message("half"), status="cancelled")
    assert ours["failure"] == ("incomplete", True, "recorded: the server cancelled the answer")


@pytest.mark.parametrize(
    ("details", "finish"),
    [
        ({"reason": "max_output_tokens"}, Finish("length", "max_output_tokens")),
        ({"reason": "content_filter"}, Finish("content_filter", "content_filter")),  # A7-3
        ({"reason": "steered"}, Finish("unknown", "steered")),
        (None, Finish("unknown", "incomplete")),
        ("odd", Finish("unknown", "incomplete")),
    ],
)
def test_incomplete_responses_say_why(details: Any, finish: Finish) -> None:
    ours = said(message("half"), status="incomplete", incomplete_details=details)
    assert (ours["text"], ours["finish"]) == ("half", finish)


def test_a_refusal_is_text_and_a_reason() -> None:  # A7-3
    part = {"type": "refusal", "refusal": "I cannot."}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    streamed = [
        event("response.output_item.added", output_index=0, item=item | {"content": []}),
        event("response.refusal.delta", output_index=0, content_index=0, delta="I can"),
        event("response.refusal.done", output_index=0, content_index=0, refusal="I cannot."),
        event("response.completed", response=response("completed") | {"output": [item]}),
    ]
    document = [json.dumps(response("completed") | {"output": [item]}).encode()]
    for body in (streamed, document):
        ours = summary(body)
        assert (ours["text"], ours["finish"]) == ("I cannot.", Finish("refusal", "completed"))


def test_a_response_that_only_its_end_tells() -> None:
    body = response("completed", [reasoning("why"), message("hi"), function_call(call("f", a=1))])
    ours = summary([event("response.completed", response=body)])
    assert (ours["text"], ours["reasoning"]) == ("hi", "why")
    assert ours["calls"] == [["f", '{"a":1}']]
    assert [blob.part for blob in ours["blobs"]] == ["message"]


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_document_that_is_not_finished_is_no_answer(status: str) -> None:
    told = summary([json.dumps(response(status)).encode()])["failure"]
    assert told == ("incomplete", True, f"recorded: the server answered with a response that is"
                    f" still {status}")  # fmt: skip


def test_summaries_are_paragraphs_and_messages_too() -> None:
    ours = said(reasoning("one", "two", id="r1"), message("a", id="m1"),
                reasoning("three", id="r2"), message("b", id="m2"))  # fmt: skip
    assert ours["reasoning"] == "one\n\ntwo\n\nthree"
    assert ours["text"] == "a\n\nb"
    (blob,) = ours["blobs"]
    places = [(e.get("start"), e.get("end")) for e in blob.data["output"]]
    assert places == [(None, None), (0, 1), (None, None), (3, 4)]


def test_a_summary_and_the_reasoning_itself_are_not_both_shown() -> None:
    assert said(reasoning("short", content="long"), message("x"))["reasoning"] == "short"
    assert said(reasoning(content="long"), message("x"))["reasoning"] == "long"


def test_calls_keep_their_order_and_arguments() -> None:
    calls = [call("a", x="1" * 50), FakeCall("b", "", "call_b"), call("c", y="\u4f60\U0001f980")]
    reply = tool_calls(*calls, say="so")
    ours = summary([piece for piece in reply.body if isinstance(piece, bytes)])
    assert ours["text"] == "so"
    assert ours["calls"] == [[one.name, one.arguments] for one in calls]
    assert ours["finish"] == Finish("tool_calls", "completed")
    assert ours["blobs"] == []


def test_names_of_tools_come_back() -> None:  # B7-3
    reply = tool_calls(call("a_b_1234", x=1))
    body = [piece for piece in reply.body if isinstance(piece, bytes)]
    assert summary(body, {"a_b_1234": "a.b"})["calls"] == [["a.b", '{"x":1}']]


def test_arguments_that_came_otherwise_at_the_end_are_those_that_count() -> None:
    item = {"id": "fc", "type": "function_call", "name": "f", "call_id": "c", "arguments": ""}
    ours = summary([
        event("response.output_item.added", output_index=0, item=item),
        event("response.function_call_arguments.delta", output_index=0, delta='{"a":'),
        event("response.output_item.done", output_index=0, item=item | {"arguments": '{"b":2}'}),
        event("response.completed", response=response("completed")),
    ])  # fmt: skip
    assert ours["calls"] == [["f", '{"b":2}']]


def test_halves_of_a_character_in_two_pieces_are_one() -> None:
    ours = summary([
        b'data: {"type":"response.output_text.delta","delta":"a\\ud83e"}\n\n',
        b'data: {"type":"response.output_text.delta","delta":"\\udd80b\\ud83e"}\n\n',
        event("response.completed", response=response("completed")),
    ])  # fmt: skip
    assert ours["text"] == "a\U0001f980b\ufffd"


def test_raw_line_separators_and_bad_bytes() -> None:  # B1-5 B1-7
    ours = summary([
        'data:{"type":"response.output_text.delta","delta":"a\u2028b\u0085"}\n\n'.encode(),
        b'data:{"type":"response.output_text.delta","delta":"\xff"}\n\n',
        b'event: response.something_new\ndata:{"type":"response.something_new"}\n\n',  # B1-4
        event("response.completed", response=response("completed")),
    ])  # fmt: skip
    assert ours["text"] == "a\u2028b\u0085\ufffd"


def test_usage_is_disjoint() -> None:  # B8-2
    counts = usage(17_111, 50, cached=17_102, written=4, reasoning=30)
    assert said(message("x"), usage=counts)["usage"] == Usage(
        input=5, cache_read=17_102, cache_write=4, output=20, reasoning=30
    )
    odd = {"input_tokens": float("nan"), "output_tokens": -3, "input_tokens_details": []}
    assert said(message("x"), usage=odd)["usage"] == Usage()
    assert said(message("x"), usage=None)["usage"] is None


def test_too_many_calls_are_no_answer() -> None:
    calls = [function_call(call("f", call_id=f"c{number}", a=number)) for number in range(300)]
    assert said(*calls)["failure"][:2] == ("incomplete", True)


def test_keep_alives_are_no_progress() -> None:
    decoder = ResponsesDecoder(Origin("x"))
    assert list(decoder.feed(b'data: {"type":"keepalive","sequence_number":3}\n\n'))
    assert decoder.events_seen == 0
    assert list(decoder.feed(event("response.in_progress", response={}))) == []
    assert decoder.events_seen == 1


def test_text_streams_as_it_comes() -> None:
    reply = text("he", "llo")
    pieces = [piece for piece in reply.body if isinstance(piece, bytes)]
    decoder = ResponsesDecoder(Origin("x"))
    given = [[*decoder.feed(piece)] for piece in pieces]
    assert given[0] == [FirstByte()]
    assert given[2:4] == [[TextDelta("he")], [TextDelta("llo")]]
    assert given[-1][-1] == Finish("stop", "completed")
    assert decoder.finished


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=5) | st.sampled_from(
        ["reasoning", "message", "function_call", "output_text", "summary_text", "failed"]
    ),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "id", "item", "output", "content", "summary", "text", "delta", "arguments",
             "name", "status", "error", "usage", "response", "output_index", "content_index",
             "item_id", "phase", "encrypted_content", "incomplete_details"]
        ), inner, max_size=6),
    max_leaves=12,
)  # fmt: skip
_KIND = st.sampled_from(
    [
        "response.output_item.added", "response.output_item.done", "response.output_text.delta",
        "response.output_text.done", "response.refusal.delta", "response.completed",
        "response.reasoning_summary_text.delta", "response.reasoning_text.done",
        "response.function_call_arguments.delta", "response.function_call_arguments.done",
        "response.incomplete", "response.failed", "error", "x",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(_KIND, st.dictionaries(st.text(max_size=4), _JSON) | _JSON), max_size=8))
def test_any_json_ends_with_a_finish_or_a_failure(events: list[tuple[str, Any]]) -> None:
    body = b"".join(
        b"data: " + json.dumps((value if isinstance(value, dict) else {"item": value})
                               | {"type": kind}).encode() + b"\n\n"
        for kind, value in events
    )  # fmt: skip
    given_, failure = decode([body])
    assert (failure is None) == (bool(given_) and isinstance(given_[-1], Finish))
    started = [one.index for one in given_ if isinstance(one, CallStart)]
    assert started == list(range(len(started)))


@given(st.binary(max_size=200))
def test_any_bytes_end_with_a_failure(body: bytes) -> None:
    assert decode([body])[1] is not None
