"""Answers of the Messages API that are odd, broken, or none."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala.models.anthropic.decode import AnthropicDecoder
from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    Finish,
    FinishReason,
    FirstByte,
    ModelEvent,
    ModelFailure,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.failures import Origin
from vaala.models.limits import CALLS_PER_ANSWER_MAX
from vaala.testing.provider_anthropic import (
    PING,
    block,
    call_block,
    error_event,
    event,
    message_delta,
    message_start,
    text_block,
    thinking_block,
)
from vaala.testing.provider_chat import call
from vaala_protocol.settings import Usage

START = message_start()
STOP = event("message_stop")


def decode(
    *pieces: bytes, names: dict[str, str] | None = None
) -> tuple[list[ModelEvent], ModelFailure | None]:
    decoder = AnthropicDecoder(Origin("fake"), names or {})
    events: list[ModelEvent] = []
    try:
        for piece in pieces:
            for found in decoder.feed(piece):
                events.append(found)
        for found in decoder.end():
            events.append(found)
    except ModelFailure as failure:
        return events, failure
    assert decoder.ended
    return events, None


def fails(*pieces: bytes) -> tuple[str, bool, str]:
    events, failure = decode(*pieces)
    assert failure is not None
    assert not any(isinstance(found, Finish) for found in events)
    return failure.kind, failure.retryable, failure.message


def whole(*blocks: bytes, stop: str = "end_turn", **more: Any) -> list[ModelEvent]:
    events, failure = decode(START, *blocks, message_delta(stop, **more), STOP)
    assert failure is None
    return events


def test_the_order_of_events() -> None:
    events = whole(
        thinking_block(0, "hm", "m"), text_block(1, "Hi"), call_block(2, call("f", a=1)),
        stop="tool_use",
    )  # fmt: skip
    assert events == [
        FirstByte(),
        UsageReport(Usage(input=10, output=1)),
        ReasoningDelta("hm"), ReasoningDelta("m"),
        TextDelta("Hi"),
        CallStart(0, "f"), CallDelta(0, '{"a":1}'),
        UsageReport(Usage(input=10, output=5)),
        CallEnd(0, '{"a":1}'),
        ProviderBlob(0, {
            "blocks": [{"thinking": 3, "signature": "sig"}, {"text": 2}, {"call": 0}],
            "crc": zlib.crc32(b"hmm"),
        }),
        Finish("tool_calls", "tool_use"),
    ]  # fmt: skip


REASONS: list[tuple[str, FinishReason]] = [
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("max_tokens", "length"),
    ("pause_turn", "pause"),  # A7-3
    ("compaction", "pause"),
    ("brand_new", "unknown"),
    ("tool_use", "stop"),  # a lie: there is text, and no call
]


@pytest.mark.parametrize(("raw", "reason"), REASONS)
def test_stop_reasons(raw: str, reason: FinishReason) -> None:
    assert whole(text_block(0, "x"), stop=raw)[-1] == Finish(reason, raw)


def test_a_refusal_names_its_policy() -> None:  # A7-3
    details = {"type": "refusal", "category": "cyber", "explanation": None}
    events = whole(text_block(0, "x"), stop="refusal", stop_details=details)
    assert events[-1] == Finish("refusal", "refusal: cyber")
    assert whole(stop="refusal", stop_details={"category": None})[-1] == Finish(
        "refusal", "refusal"
    )


def test_a_full_window_is_an_overflow_and_keeps_what_was_said() -> None:
    stop = message_delta("model_context_window_exceeded")
    events, failure = decode(START, text_block(0, "half"), stop, STOP)
    assert failure is not None
    assert (failure.kind, failure.retryable) == ("context_overflow", False)
    assert TextDelta("half") in events


def test_calls_announced_and_not_made() -> None:
    assert whole(stop="tool_use")[-1] == Finish("malformed_call", "tool_use")
    assert whole(call_block(0, call("f")), stop="end_turn")[-1] == Finish("tool_calls", "end_turn")


def test_an_empty_answer_is_an_answer_when_the_server_says_so() -> None:  # A4-1
    assert whole()[-1] == Finish("stop", "end_turn")
    assert fails(START, STOP)[:2] == ("incomplete", True)


def test_the_end_without_message_stop() -> None:  # B1-6
    text = text_block(0, "x")
    events, failure = decode(START, text, message_delta("end_turn"))
    assert failure is None
    assert events[-1] == Finish("stop", "end_turn")
    assert fails(START, text) == (
        "incomplete", True, "fake: the answer ended before it was complete",
    )  # fmt: skip
    assert fails() == ("incomplete", True, "fake: the answer was empty")
    assert fails(PING) == ("incomplete", True, "fake: the answer was empty")


ERRORS = [
    ("overloaded_error", "overloaded", True),  # B2-1
    ("api_error", "overloaded", True),
    ("timeout_error", "overloaded", True),
    ("rate_limit_error", "rate_limit", True),
    ("invalid_request_error", "invalid_request", False),
    ("authentication_error", "auth", False),
    ("permission_error", "auth", False),
    ("billing_error", "billing", False),
    ("request_too_large", "context_overflow", False),
]


@pytest.mark.parametrize(("type", "kind", "retryable"), ERRORS)
def test_an_error_in_the_stream(type: str, kind: str, retryable: bool) -> None:
    half = text_block(0, "half a sen")
    events, failure = decode(START, half, error_event(type, "It went wrong"))
    assert failure is not None
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert failure.message.endswith("It went wrong")
    assert TextDelta("half a sen") in events


def test_comments_pings_and_unknown_events_mean_nothing() -> None:  # B1-3 B1-4
    noise = b": keep-alive\n\n:\n\nevent: news\ndata: <html>\n\n" + event("fresh", a=1)
    decoder = AnthropicDecoder(Origin("fake"))
    list(decoder.feed(noise + PING))
    assert decoder.events_seen == 1, "only the kind that is not known may be progress"
    unspaced = message_delta("end_turn").replace(b"data: ", b"data:")
    events, failure = decode(noise, START, PING, noise, text_block(0, "x"), unspaced, noise, STOP)
    assert failure is None
    assert [found for found in events if isinstance(found, TextDelta)] == [TextDelta("x")]


def test_events_named_by_their_line_alone() -> None:
    start = b'event: message_start\ndata: {"message": {"id": "m"}}\n\n'
    delta = b'event: message_delta\ndata: {"delta": {"stop_reason": "end_turn"}}\n\n'
    events, failure = decode(start, text_block(0, "x"), delta, b"event: message_stop\ndata: {}\n\n")
    assert failure is None
    assert events[-1] == Finish("stop", "end_turn")


def test_half_a_json() -> None:
    broken = b'event: content_block_delta\ndata: {"type":"content_block_delta","ind\n\n'
    assert fails(START, broken, STOP)[:2] == ("incomplete", True)


def test_bytes_that_are_no_text() -> None:  # B1-5 B1-7
    said = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
    said += '{"type":"text_delta","text":"a\u2028b\u0085c'
    odd = said.encode() + b'\xff"}}\n\n'
    events, failure = decode(START, odd, message_delta("end_turn"), STOP)
    assert failure is None
    assert TextDelta("a\u2028b\u0085c\ufffd") in events


def test_halves_of_a_character_in_two_deltas() -> None:
    halves = [b'{"type":"text_delta","text":"\\ud83d"}', b'{"type":"text_delta","text":"\\ude00"}']
    deltas = [
        b'event: x\ndata: {"type":"content_block_delta","index":0,"delta":' + half + b"}\n\n"
        for half in halves
    ]
    events, _ = decode(START, *deltas, message_delta("end_turn"), STOP)
    assert TextDelta("😀") in events
    alone, _ = decode(START, deltas[0], message_delta("end_turn"), STOP)
    assert TextDelta("\ufffd") in alone


def test_a_page_or_a_document_instead_of_a_stream() -> None:  # B2-4
    assert fails(b"<!doctype html><title>Log in</title>")[0] == "network"
    assert fails(b'{"type":"error","error":{"type":"overloaded_error","message":"no"}}')[:2] == (
        "overloaded", True,
    )  # fmt: skip
    assert fails(b'{"type":"message","content":[]}')[0] == "incomplete"
    assert fails(b"{nonsense")[0] == "incomplete"
    document = {
        "id": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    events, failure = decode(json.dumps(document).encode())
    assert failure is None
    assert [type(found).__name__ for found in events] == [
        "FirstByte", "UsageReport", "ReasoningDelta", "TextDelta", "CallStart", "CallEnd",
        "ProviderBlob", "Finish",
    ]  # fmt: skip
    assert CallEnd(0, '{"a":1}') in events


def test_arguments_in_pieces_of_any_form() -> None:
    events = whole(call_block(0, call("f", path="ä😀"), piece_chars=1), stop="tool_use")
    pieces = [found.arguments for found in events if isinstance(found, CallDelta)]
    assert "".join(pieces) == '{"path":"ä😀"}'
    assert CallEnd(0, '{"path":"ä😀"}') in events


def test_arguments_that_are_cut_off_stay_cut_off() -> None:
    piece = {"type": "input_json_delta", "partial_json": '{"path": "a.tx'}
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    events = whole(block(0, start, piece), stop="max_tokens")
    assert CallEnd(0, '{"path": "a.tx') in events
    assert events[-1] == Finish("length", "max_tokens")


def test_no_call_of_a_message_that_was_broken_off_is_run() -> None:
    """Also one that seemed complete, or that wants no arguments."""
    again = message_start("msg_other")
    for first in (call("f", a=1), call("f")):
        events, failure = decode(
            START, thinking_block(0, "hm"), call_block(1, first),
            again, call_block(0, call("g")), message_delta("tool_use"), STOP,
        )  # fmt: skip
        assert failure is None
        ends = [found.arguments for found in events if isinstance(found, CallEnd)]
        with pytest.raises(ValueError, match=r"."):
            json.loads(ends[0])
        assert ends[1] == "{}"
        assert not any(isinstance(found, ProviderBlob) for found in events)


def test_the_same_message_begun_twice_is_one() -> None:
    events = whole(message_start(), text_block(0, "x"), message_start(), text_block(1, "y"))
    assert [found.text for found in events if isinstance(found, TextDelta)] == ["x", "y"]


def test_too_many_calls() -> None:
    calls = [call_block(index, call("f")) for index in range(CALLS_PER_ANSWER_MAX + 1)]
    assert fails(START, *calls)[:2] == ("incomplete", True)


def test_names_come_back_as_ours() -> None:  # B7-3
    events, _ = decode(
        START, call_block(0, call("a_b_12345678")), message_delta("tool_use"), STOP,
        names={"a_b_12345678": "a.b"},
    )  # fmt: skip
    assert CallStart(0, "a.b") in events


def usage_of(start: dict[str, Any], delta: dict[str, Any]) -> Usage:
    head = event("message_start", message={"id": "m", "usage": start})
    tail = event("message_delta", delta={"stop_reason": "end_turn"}, usage=delta)
    events, _ = decode(head, text_block(0, "x"), tail, STOP)
    return [found.usage for found in events if isinstance(found, UsageReport)][-1]


def test_usage_is_in_disjoint_classes_and_never_added_twice() -> None:  # B8-1 B8-3
    start = {
        "input_tokens": 9,
        "cache_read_input_tokens": 17_102,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    usage = usage_of(start, {"output_tokens": 50})
    assert usage == Usage(input=9, cache_read=17_102, output=50)
    assert usage.input + usage.cache_read + usage.cache_write == 17_111
    again = usage_of(start, start | {"output_tokens": 50, "input_tokens": None})
    assert again == usage
    thought = {"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 30}}
    assert usage_of(start, thought) == Usage(input=9, cache_read=17_102, output=20, reasoning=30)
    odd: dict[str, Any] = {
        "output_tokens": "x",
        "input_tokens": -3,
        "cache_read_input_tokens": True,
    }
    assert usage_of(start, odd) == Usage(input=0, cache_read=17_102, output=1)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = (
    "type", "index", "delta", "content_block", "message", "usage", "text", "partial_json", "id",
    "thinking", "signature", "name", "input", "stop_reason", "error", "content",
)  # fmt: skip
TYPES = (
    "message_start", "content_block_start", "content_block_delta", "message_delta", "ping",
    "message_stop", "error", "text", "tool_use", "thinking", "redacted_thinking", "text_delta",
    "thinking_delta", "input_json_delta", "signature_delta",
)  # fmt: skip
nested: st.SearchStrategy[Any] = st.recursive(
    json_values | st.sampled_from(TYPES),
    lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)
chunks = st.one_of(
    st.binary(max_size=40),
    st.dictionaries(st.sampled_from(FIELDS), nested, max_size=6).map(
        lambda fields: b"data: " + json.dumps(fields).encode() + b"\n\n"
    ),
    st.sampled_from([START, PING, STOP, text_block(0, "x"), call_block(0, call("f", a=1))]),
)


@given(st.lists(chunks, max_size=8))
def test_any_bytes_end_in_a_finish_or_a_failure(pieces: list[bytes]) -> None:
    events, failure = decode(*pieces)
    finishes = [found for found in events if isinstance(found, Finish)]
    assert len(finishes) == (0 if failure else 1)
    for found in events:
        for text in (getattr(found, "text", ""), getattr(found, "arguments", "")):
            text.encode()  # can be stored
    starts = [found.index for found in events if isinstance(found, CallStart)]
    assert starts == list(range(len(starts)))
    if finishes:
        assert [found.index for found in events if isinstance(found, CallEnd)] == starts
