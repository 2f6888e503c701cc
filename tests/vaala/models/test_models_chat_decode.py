"""Chat-completions answers: calls, ends, errors inside a 200, usage, odd text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    Finish,
    FirstByte,
    ModelEvent,
    ModelFailure,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.chat.decode import ChatDecoder
from vaala.models.failures import Origin
from vaala.testing.provider_chat import DONE, chunk, data, usage_chunk
from vaala_protocol.settings import Usage

TOOLS = {name: name for name in ("read", "read_file", "write_file")}


def decode(*pieces: bytes) -> list[ModelEvent]:
    decoder = ChatDecoder(Origin("fake"), TOOLS)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + list(decoder.end())


def fails(*pieces: bytes) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        decode(*pieces)
    return caught.value


def calls_of(events: list[ModelEvent]) -> list[tuple[str, str]]:
    starts = [event for event in events if isinstance(event, CallStart)]
    ends = {event.index: event.arguments for event in events if isinstance(event, CallEnd)}
    assert [start.index for start in starts] == sorted(ends)
    for start in starts:
        parts = [e.arguments for e in events if isinstance(e, CallDelta) and e.index == start.index]
        assert "".join(parts) == ends[start.index]
    return [(start.name, ends[start.index]) for start in starts]


def assemble(*deltas: list[dict[str, Any]]) -> list[tuple[str, str]]:
    chunks = [chunk({"tool_calls": entries}) for entries in deltas]
    return calls_of(decode(*chunks, chunk(finish="tool_calls"), DONE))


def entry(
    name: str | None = None, arguments: Any = None, *, index: int | None = 0, id: str | None = None
) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": "function", "function": {}}
    if index is not None:
        fields["index"] = index
    if id is not None:
        fields["id"] = id
    if name is not None:
        fields["function"]["name"] = name
    if arguments is not None:
        fields["function"]["arguments"] = arguments
    return fields


READ, WRITE = ("read_file", '{"path":"a"}'), ("write_file", '{"path":"b"}')

SHAPES: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str]]]] = {
    "A3-1 same index, another id": (
        [[entry(*READ, id="call_a")], [entry(*WRITE, id="call_b")]],
        [READ, WRITE],
    ),
    "A3-1 same index, no id, complete arguments": (
        [[entry(*READ)], [entry(*WRITE)]],
        [READ, WRITE],
    ),
    "A3-2 every chunk repeats the id": (
        [
            [entry("read_file", "", id="chatcmpl-tool-9")],
            [entry(None, '{"path":', id="chatcmpl-tool-9")],
            [entry(None, '"a"}', id="chatcmpl-tool-9")],
        ],
        [READ],
    ),
    "A3-2 id and name repeated": (
        [[entry("read_file", "", id="0")], [entry("read_file", '{"path":"a"}', id="0")]],
        [READ],
    ),
    "A3-3 empty ids": ([[entry(*READ, id=""), entry(*WRITE, index=1, id="")]], [READ, WRITE]),
    "A3-3 neither id nor index, one list": (
        [[entry(*READ, index=None), entry(*WRITE, index=None)]],
        [READ, WRITE],
    ),
    "A3-3 neither id nor index, no arguments, one list": (
        [[entry("read", "", index=None), entry("read", "", index=None)]],
        [("read", ""), ("read", "")],
    ),
    "A3-3 no index, ids": (
        [[entry(*READ, index=None, id="x")], [entry(*WRITE, index=None, id="y")]],
        [READ, WRITE],
    ),
    "A3-3 no index, pieces by id": (
        [
            [
                entry("read_file", "", index=None, id="x"),
                entry("write_file", "", index=None, id="y"),
            ],
            [entry(None, '{"path":"b"}', index=None, id="y")],
            [entry(None, '{"path":"a"}', index=None, id="x")],
        ],
        [READ, WRITE],
    ),
    "A3-4 name in two pieces": (
        [[entry("read_")], [entry("file")], [entry(None, READ[1])]],
        [READ],
    ),
    "A3-4 first piece is a tool's name too": (
        [[entry("read")], [entry("_file")], [entry(None, READ[1])]],
        [READ],
    ),
    "name grows from chunk to chunk": (
        [[entry("read_")], [entry("read_file")], [entry(None, READ[1])]],
        [READ],
    ),
    "A3-5 index 1 before index 0, byte by byte": (
        [
            [entry("write_file", "", index=1, id="w")],
            [entry("read_file", "", index=0, id="r")],
            *(
                [entry(None, r, index=0), entry(None, w, index=1)]
                for r, w in zip(READ[1], WRITE[1], strict=True)
            ),
        ],
        [WRITE, READ],
    ),
    "index from 1": ([[entry("read_file", index=1)], [entry(None, READ[1], index=1)]], [READ]),
    "arguments null": ([[entry("read", None)]], [("read", "")]),
    "arguments as an object": ([[entry("read_file", {"path": "a"})]], [READ]),
    "arguments before the name": (
        [[entry(None, '{"path"')], [entry("read_file", ':"a"}')]],
        [READ],
    ),
    "a changed id without a name goes on": (
        [[entry("read_file", '{"path"', id="1")], [entry(None, ':"a"}', id="2")]],
        [READ],
    ),
    "empty name in what follows": (
        [[entry("read_file", "", id="1")], [entry("", '{"path":"a"}')]],
        [READ],
    ),
    "function beside index": ([[{"index": 0, "name": "read_file", "arguments": READ[1]}]], [READ]),
    "noise in the list": (
        [[{"index": "x"}, {}, entry(*READ, index=None)], [{"function": None}]],
        [READ],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_are_assembled(shape: str) -> None:
    deltas, expected = SHAPES[shape]
    assert assemble(*deltas) == expected


def test_text_between_the_deltas_of_a_call() -> None:  # A3-5
    events = decode(
        chunk({"tool_calls": [entry("read_file", '{"path"')]}),
        chunk({"content": "hm"}),
        chunk({"tool_calls": [entry(None, ':"a"}')]}),
        chunk(finish="tool_calls"),
        DONE,
    )
    assert calls_of(events) == [READ]
    assert TextDelta("hm") in events


def test_events_come_as_the_bytes_do() -> None:
    decoder = ChatDecoder(Origin("fake"), TOOLS)
    assert list(decoder.feed(chunk({"content": "a"}))) == [FirstByte(), TextDelta("a")]
    head = chunk({"tool_calls": [entry("read_file", "")]})
    assert list(decoder.feed(head)) == []  # the name may still grow
    part = chunk({"tool_calls": [entry(None, '{"pa')]})
    assert list(decoder.feed(part)) == [CallStart(0, "read_file"), CallDelta(0, '{"pa')]


def test_the_old_function_call_form() -> None:
    old = chunk({"function_call": {"name": "read_file", "arguments": READ[1]}})
    assert calls_of(decode(old, chunk(finish="function_call"))) == [READ]


def test_too_many_calls_are_an_error() -> None:
    entries = [entry("read", "{}", index=index) for index in range(257)]
    assert "more than 256 tool calls" in fails(chunk({"tool_calls": entries})).message


ENDS = {
    "stop": ("stop", False),
    "length": ("length", False),
    "content_filter": ("content_filter", False),  # A7-3
    "refusal": ("refusal", False),
    "pause_turn": ("pause", False),
    "MALFORMED_FUNCTION_CALL": ("malformed_call", False),  # A7-1
    "banana": ("unknown", False),
}


@pytest.mark.parametrize("raw", ENDS)
def test_finish_reasons(raw: str) -> None:
    finish = decode(chunk({"content": "x"}), chunk(finish=raw), DONE)[-1]
    assert isinstance(finish, Finish)
    assert (finish.reason, finish.raw) == (ENDS[raw][0], raw)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [("stop", "tool_calls"), ("length", "length"), ("banana", "unknown"), (None, "tool_calls")],
)
def test_a_finish_reason_that_lies_about_calls(raw: str | None, reason: str) -> None:  # A2-2
    finish = decode(chunk({"tool_calls": [entry(*READ)]}), chunk(finish=raw), DONE)[-1]
    assert isinstance(finish, Finish)
    assert (finish.reason, finish.raw) == (reason, raw or "")


def test_tool_calls_without_any_call() -> None:
    assert decode(chunk({"content": "x"}), chunk(finish="tool_calls"))[-1] == Finish(
        "stop", "tool_calls"
    )
    assert decode(chunk(finish="tool_calls"))[-1] == Finish("malformed_call", "tool_calls")


def test_a_refusal_is_text_and_a_refusal() -> None:  # A7-3
    events = decode(chunk({"refusal": "I can't"}), chunk(finish="stop"), DONE)
    assert events[1:] == [TextDelta("I can't"), Finish("refusal", "stop")]


@pytest.mark.parametrize("raw", ["insufficient_system_resource", "error"])
def test_an_end_that_is_a_failure(raw: str) -> None:
    failure = fails(chunk({"content": "x"}), chunk(finish=raw), DONE)
    assert failure.retryable
    assert raw in failure.message


def test_finished_without_done_is_complete() -> None:  # B1-6
    assert decode(chunk({"content": "x"}), chunk(finish="stop"))[-1] == Finish("stop", "stop")


@pytest.mark.parametrize("arguments", ["", '{"path":"a.txt","content":"hel', '{"path":"a"}'])
def test_cut_off_without_an_end_is_incomplete(arguments: str) -> None:  # A2-1 B1-6
    failure = fails(chunk({"tool_calls": [entry("write_file", arguments)]}))
    assert (failure.kind, failure.retryable) == ("incomplete", True)


@pytest.mark.parametrize("body", [b"", b"\n\n", b": ping\n\n", DONE, b"\xef\xbb\xbf "])
def test_an_empty_answer_is_incomplete(body: bytes) -> None:
    failure = fails(*([body] if body else []))
    assert (failure.kind, failure.retryable) == ("incomplete", True)
    assert "empty" in failure.message


def test_an_error_in_the_stream_ends_it() -> None:  # B2-2
    error = data({"error": {"message": "boom"}})
    failure = fails(chunk({"content": "half"}), error, DONE)
    assert (failure.kind, failure.retryable) == ("incomplete", True)
    assert "boom" in failure.message


def test_text_before_an_error_is_given_first() -> None:  # B2-1
    decoder = ChatDecoder(Origin("fake"))
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
    events = decoder.feed(chunk({"content": "half"}) + error)
    assert [next(events), next(events)] == [FirstByte(), TextDelta("half")]
    with pytest.raises(ModelFailure) as caught:
        next(events)
    assert (caught.value.kind, caught.value.retryable) == ("overloaded", True)


def test_an_error_beside_choices() -> None:
    both = {"error": {"code": 502, "message": "upstream"}, "choices": [{"delta": {}, "index": 0}]}
    assert fails(data(both), DONE).kind == "overloaded"
    inner = {"choices": [{"index": 0, "delta": {}, "error": {"code": 429, "message": "slow"}}]}
    assert fails(data(inner)).kind == "rate_limit"


def test_overflow_told_in_the_stream() -> None:
    failure = fails(data({"error": "Context size has been exceeded"}))
    assert (failure.kind, failure.retryable) == ("context_overflow", False)


def test_usage_in_a_chunk_without_choices() -> None:  # B2-3
    events = decode(chunk({"content": "x"}), chunk(finish="stop"), usage_chunk(100, 7, cached=60))
    assert events[-2] == UsageReport(Usage(input=40, cache_read=60, output=7))


USAGES = [  # B8-2
    ({"prompt_tokens": 17111, "prompt_tokens_details": {"cached_tokens": 17102}},
     Usage(input=9, cache_read=17102)),
    ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "completion_tokens": 3},
     Usage(input=6, cache_read=4, output=3)),
    ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}},
     Usage(output=5, reasoning=4)),
    ({"prompt_tokens": 2, "completion_tokens": 26, "total_tokens": 255,
      "completion_tokens_details": {"reasoning_tokens": 227}},
     Usage(input=2, output=26, reasoning=227)),
    ({"prompt_tokens": 2, "completion_tokens": 5, "total_tokens": 10,
      "completion_tokens_details": {"reasoning_tokens": 3}},
     Usage(input=2, output=5, reasoning=3)),
    ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}},
     Usage(input=1, cache_read=4, cache_write=5)),
    ({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(cache_read=3)),
    ({"prompt_tokens": None, "completion_tokens": "x", "prompt_tokens_details": None}, Usage()),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "usage"), USAGES)
def test_usage_in_disjoint_classes(fields: dict[str, Any], usage: Usage) -> None:
    events = decode(chunk({"content": "x"}), data({"usage": fields}), chunk(finish="stop"))
    assert UsageReport(usage) in events


def test_numbers_that_no_reader_of_json_holds() -> None:
    huge = chunk({"content": "x"}) + data({"usage": {"prompt_tokens": 1e300}})
    assert UsageReport(Usage(input=2**53 - 1)) in decode(huge, chunk(finish="stop"))
    # Python's reader, the second one, takes what JSON does not have.
    infinite = b'data: {"choices":[{"delta":{"tool_calls":[{"index":Infinity,"function":'
    infinite += b'{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\n'
    assert calls_of(decode(infinite)) == [("read", "{}")]


def test_space_before_the_first_event_is_not_kept() -> None:
    decoder = ChatDecoder(Origin("fake"))
    events = [event for _ in range(1000) for event in decoder.feed(b" \n" * 1000)]
    assert events == [FirstByte()]
    assert list(decoder.feed(b"\xef\xbb\xbf" + chunk({"content": "x"}))) == [TextDelta("x")]
    message = b'{"choices":[{"message":{"content":"y"},"finish_reason":"stop"}]}'
    assert TextDelta("y") in decode(b"\n\n ", message[:9], message[9:])


def test_usage_repeated_is_reported_once_and_may_be_missing() -> None:
    events = decode(chunk({"content": "x"}), usage_chunk(), usage_chunk(), chunk(finish="stop"))
    assert sum(isinstance(event, UsageReport) for event in events) == 1
    events = decode(chunk({"content": "x"}), chunk(finish="stop"), DONE)
    assert not any(isinstance(event, UsageReport) for event in events)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning(key: str) -> None:
    assert decode(chunk({key: "hm", "content": None}), chunk(finish="stop"))[1] == ReasoningDelta(
        "hm"
    )


def test_content_in_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "so"},
    ]
    events = decode(chunk({"content": parts}), chunk(finish="stop"))
    assert events[1:3] == [ReasoningDelta("hm"), TextDelta("so")]


def raw(text: str) -> bytes:
    return b'data: {"choices":[{"delta":{"content":"' + text.encode("latin-1") + b'"}}]}\n\n'


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_odd_text_comes_through() -> None:
    end = chunk(finish="stop")
    assert text_of(decode(raw("a\xffb"), end)) == "a\ufffdb"  # B1-7
    assert text_of(decode(raw(r"\ud83e"), raw(r"\udd80!"), end)) == "\U0001f980!"
    assert text_of(decode(raw(r"a\ud83e"), raw("b"), end)) == "a\ufffdb"
    assert text_of(decode(raw(r"a\ud83e"), end)) == "a\ufffd"
    assert text_of(decode(raw("a\tb"), end)) == "a\tb"
    halves = [entry("read_file", '{"path":"\ud83e'), entry(None, '\udd80"}')]
    pieces = [
        f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [half]}}]})}\n\n".encode()
        for half in halves
    ]
    assert calls_of(decode(*pieces, end)) == [("read_file", '{"path":"\U0001f980"}')]


def test_an_index_that_no_float_holds() -> None:  # A3-5
    first = {"index": 10**400, "function": {"name": "read", "arguments": "{}"}}
    second = {"index": 10**401, "function": {"name": "read", "arguments": "{}"}}
    assert assemble([first, second]) == [("read", "{}"), ("read", "{}")]


def test_half_a_character_in_arguments_that_are_an_object() -> None:
    half = {"tool_calls": [entry("read_file", {"path": "a\ud800b"})]}
    event = b"data: " + json.dumps({"choices": [{"delta": half}]}).encode() + b"\n\n"
    events = decode(event, chunk(finish="tool_calls"))
    assert calls_of(events) == [("read_file", '{"path":"a\ufffdb"}')]


def test_a_document_instead_of_a_stream() -> None:
    message = {"content": "hi", "tool_calls": [entry(*READ, index=None, id="1")]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    body = json.dumps({"choices": [choice], "usage": usage}, indent=1).encode()
    for pieces in ([body], [body[at : at + 1] for at in range(len(body))]):
        events = decode(*pieces)
        assert calls_of(events) == [READ]
        assert TextDelta("hi") in events
        assert UsageReport(Usage(input=3, output=2)) in events
        assert events[-1] == Finish("tool_calls", "tool_calls")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error":{"message":"overflow: maximum context length is 99"}}', "context_overflow"),
        (b'[{"error":{"code":429,"message":"slow"}}]', "rate_limit"),
        (b'{"detail":"what?"}', "incomplete"),
        (b'{"choices":[', "incomplete"),
    ],
)
def test_a_document_that_is_no_answer(body: bytes, kind: str) -> None:
    assert fails(body).kind == kind


def test_a_web_page_is_named_as_one() -> None:  # B2-4
    failure = fails(b"\n<!DOCTYPE html><html><title>Sign in</title>")
    assert (failure.kind, failure.retryable) == ("network", False)
    assert "web page" in failure.message


def test_an_event_that_is_no_json() -> None:
    assert fails(chunk({"content": "x"}), b"data: {oops\n\n").kind == "incomplete"
    end = chunk(finish="stop")
    assert decode(b"event: ping\ndata: still here\n\n", end)[-1] == Finish("stop", "stop")  # B1-4
    assert decode(end, b"data: bye\n\n")[-1] == Finish("stop", "stop")


def test_what_comes_after_the_end_is_ignored() -> None:
    assert decode(chunk(finish="stop"), DONE, chunk({"content": "x"}), b"data: ?\n\n")[-1] == (
        Finish("stop", "stop")
    )
