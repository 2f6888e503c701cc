"""Answers of generateContent that no recording has: odd, broken, streamed in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from vaala.models.gemini.decode import GeminiDecoder
from vaala.models.gemini.json_stream import ElementDecoder
from vaala.models.gemini.limits import PARTS_MAX, SIGNATURES_BYTES_MAX
from vaala.models.gemini.names import ToolNames, legal_name
from vaala.models.gemini.usage import read_usage
from vaala.models.limits import CALLS_PER_ANSWER_MAX
from vaala.models.sse import EventTooLarge
from vaala.testing.provider import one_byte_each
from vaala.testing.provider_gemini import call, counts, data, response, say
from vaala_protocol.settings import Usage

SIGNATURE = "Et0BCtoBAXLI2nw="


def events(*pieces: bytes, names: Iterable[str] = ()) -> list[ModelEvent]:
    decoder = GeminiDecoder(Origin("fake"), ToolNames(names))
    found = [event for piece in pieces for event in decoder.feed(piece)]
    return [*found, *decoder.end()]


def outcome(*pieces: bytes) -> tuple[list[ModelEvent], ModelFailure | None]:
    """What came, and the failure that ended it."""
    decoder = GeminiDecoder(Origin("fake"))
    found: list[ModelEvent] = []
    try:
        for piece in pieces:
            for event in decoder.feed(piece):
                found.append(event)
        for event in decoder.end():
            found.append(event)
    except ModelFailure as failure:
        return found, failure
    return found, None


def fails(*pieces: bytes) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        events(*pieces)
    return caught.value


def streamed(*parts: dict[str, Any], finish: str = "STOP") -> list[ModelEvent]:
    return events(*(data(response(part)) for part in parts), data(response(finish=finish)))


def ends(found: Iterable[ModelEvent]) -> list[Any]:
    return [json.loads(event.arguments) for event in found if isinstance(event, CallEnd)]


def test_thoughts_text_and_a_call() -> None:
    found = streamed(
        say("hm", thought=True), say("so"), call("read", signature=SIGNATURE, path="a")
    )
    assert found == [
        FirstByte(),
        ReasoningDelta("hm"),
        TextDelta("so"),
        CallStart(0, "read"),
        CallDelta(0, '{"path":"a"}'),
        CallEnd(0, '{"path":"a"}'),
        ProviderBlob(0, {"thoughtSignature": SIGNATURE}),
        Finish("tool_calls", "STOP"),
    ]


def test_parallel_calls_with_and_without_ids() -> None:  # A3-3
    found = events(
        data(response(call("a", call_id="x"), call("a", call_id="x"), call("b"), finish="STOP"))
    )
    assert [e.index for e in found if isinstance(e, CallStart)] == [0, 1, 2]
    assert [e.name for e in found if isinstance(e, CallStart)] == ["a", "a", "b"]


def test_an_empty_signed_part_at_the_end_is_a_part_of_its_own() -> None:
    found = streamed(say("one "), say("two"), say("", signature=SIGNATURE))
    assert [event for event in found if isinstance(event, ProviderBlob)] == [
        ProviderBlob(
            "message", {"parts": [{"text": 7}, {"text": 0, "thoughtSignature": SIGNATURE}]}
        )
    ]


def test_the_order_of_parts_is_kept_where_it_is_not_the_usual_one() -> None:
    found = streamed(say("a"), call("read"), say("b"))
    (blob,) = [event for event in found if isinstance(event, ProviderBlob)]
    assert blob.data == {"parts": [{"text": 1}, {"call": 0}, {"text": 1}]}
    assert not any(isinstance(e, ProviderBlob) for e in streamed(say("a"), call("r"), call("r")))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "malformed_call"),
        ("UNEXPECTED_TOOL_CALL", "malformed_call"),
        ("LANGUAGE", "unknown"),
        ("SOMETHING_NEW", "unknown"),
        ("OTHER", "unknown"),
    ],
)
def test_every_finish_reason_is_an_outcome(raw: str, reason: FinishReason) -> None:  # A7-3
    assert streamed(say("text"), finish=raw)[-1] == Finish(reason, raw)


def test_a_malformed_call_without_parts_is_no_success() -> None:  # A7-1
    found = events(data(response(finish="MALFORMED_FUNCTION_CALL", usage=counts(9, 0))))
    assert found[-1] == Finish("malformed_call", "MALFORMED_FUNCTION_CALL")


def test_a_cut_call_stays_cut() -> None:  # A2-2
    assert streamed(call("read"), finish="MAX_TOKENS")[-1] == Finish("length", "MAX_TOKENS")


@pytest.mark.parametrize(
    ("raw", "kind", "retryable"),
    [
        ("OTHER", "incomplete", True),
        ("MALFORMED_RESPONSE", "incomplete", True),
        ("MISSING_THOUGHT_SIGNATURE", "invalid_request", False),  # A7-4
    ],
)
def test_ends_that_are_failures(raw: str, kind: str, retryable: bool) -> None:
    failure = fails(data(response(finish=raw, message="because")))
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert f"{raw} because" in failure.message


def test_a_finish_reason_may_come_before_the_last_part() -> None:
    found = events(data(response(say("a"), finish="STOP")), data(response(say("b"))))
    assert "".join(e.text for e in found if isinstance(e, TextDelta)) == "ab"
    assert found[-1] == Finish("stop", "STOP")


def test_without_a_finish_reason_an_answer_is_incomplete() -> None:  # B1-6
    failure = fails(data(response(say("half"))))
    assert (failure.kind, failure.retryable) == ("incomplete", True)


@pytest.mark.parametrize("body", [b"", b" \r\n", b"[]", b"[", b": keep-alive\n\n", b"{"])
def test_nothing_is_an_error(body: bytes) -> None:  # B2
    assert fails(body).kind == "incomplete"


@pytest.mark.parametrize("form", ["data: %s\r\n\r\n", "%s", "[%s]", "[%s\r\n"])
def test_errors_inside_a_200(form: str) -> None:  # B2-2
    error = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
    failure = fails((form % json.dumps({"error": error})).encode())
    assert (failure.kind, failure.retryable, failure.status) == ("overloaded", True, 503)
    assert "The model is overloaded." in failure.message


def test_an_error_after_text_keeps_the_text() -> None:  # B2-1
    error = {"code": 500, "message": "boom"}
    found, failure = outcome(data(response(say("half"))) + data({"error": error}))
    assert failure is not None
    assert "boom" in failure.message
    assert found == [FirstByte(), TextDelta("half")]


def test_a_web_page_is_no_answer() -> None:  # B2-4
    failure = fails(b"<html><title>Login</title></html>")
    assert failure.kind == "network"
    assert "web page" in failure.message


def test_a_blocked_prompt() -> None:
    failure = fails(data({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": counts(9)}))
    assert (failure.kind, failure.retryable) == ("refused", False)
    assert "SAFETY" in failure.message


def test_ratings_of_a_prompt_block_nothing() -> None:
    found = events(data(response(say("a"), finish="STOP") | {"promptFeedback": {}}))
    assert found[-1] == Finish("stop", "STOP")


def test_an_array_is_streamed() -> None:
    decoder = GeminiDecoder(Origin("fake"))
    whole = json.dumps([response(say("你好🦀")), response(finish="STOP")], indent=1).encode()
    cut = whole.index(b"},\n {") + 1
    assert TextDelta("你好🦀") in list(decoder.feed(whole[:cut]))  # before the rest has come
    rest = [*decoder.feed(whole[cut:]), *decoder.end()]
    assert rest == [Finish("stop", "STOP")]


def test_one_byte_each() -> None:  # B1-1 B1-2
    body = data(response(say("你好🦀 \u2028"))) + data(response(finish="STOP"))
    raw = body.replace(rb"\u2028", "\u2028".encode())
    assert events(*one_byte_each(raw)) == events(raw)
    assert TextDelta("你好🦀 \u2028") in events(raw)


def test_done_ends_it_too() -> None:
    found = events(data(response(say("a"), finish="STOP")) + b"data: [DONE]\n\ndata: {}\n\n")
    assert found[-1] == Finish("stop", "STOP")


def test_halves_of_a_character_in_two_pieces() -> None:
    one, two = (b'data: {"candidates":[{"content":{"parts":[{"text":"\\%s"}]}}]}\n\n' % half
                for half in (b"ud83e", b"udd80"))  # fmt: skip
    found = events(one, two, data(response(finish="STOP")))
    assert [event for event in found if isinstance(event, TextDelta)] == [TextDelta("🦀")]


def test_bytes_that_are_no_text() -> None:  # B1-7
    body = data(response(say("a?b"))).replace(b"?", b"\xff")
    assert TextDelta("a\ufffdb") in events(body, data(response(finish="STOP")))


def test_other_candidates_and_unknown_parts_are_left_out() -> None:
    other = {"index": 1, "content": {"parts": [{"text": "other"}]}}
    first = response({"executableCode": {"code": "1"}}, {"inlineData": {}}, say("a"))
    first["candidates"].append(other)
    found = events(data(first), data(response(finish="STOP")))
    assert [event for event in found if isinstance(event, TextDelta)] == [TextDelta("a")]


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        (legal_name("read.file"), "read.file"),
        ("read_file", "read_file"),
        ("default_api.read_file", "read_file"),
        ("default_api:read_file", "read_file"),
        ("default_api.other", "default_api.other"),
    ],
)
def test_names_of_tools_come_back_as_ours(said: str, ours: str) -> None:  # B7-3
    found = events(data(response(call(said), finish="STOP")), names=["read_file", "read.file"])
    assert CallStart(0, ours) in found


def test_what_is_kept_with_an_answer_is_bounded() -> None:
    """The log takes an answer whose signatures are larger than it, without those that are over."""
    large = "A" * (SIGNATURES_BYTES_MAX // 2)
    found = streamed(
        call("a", signature=large), say("x", signature=large), call("b", signature="B")
    )
    kept = [event.part for event in found if isinstance(event, ProviderBlob)]
    assert kept == [0, "message"]
    order = [part for _ in range(PARTS_MAX) for part in (say("a"), say("b", thought=True))]
    assert not any(
        isinstance(event, ProviderBlob) for event in streamed(*order, call("c"), say("d"))
    )


def test_too_many_calls() -> None:
    parts = [call("a")] * (CALLS_PER_ANSWER_MAX + 1)
    failure = fails(data(response(*parts, finish="STOP")))
    assert failure.kind == "incomplete"
    assert str(CALLS_PER_ANSWER_MAX) in failure.message


def pieces_of(*pieces: dict[str, Any]) -> list[Any]:
    """The arguments of a call that is streamed in these pieces."""
    head = {"functionCall": {"name": "edit", "willContinue": True}}
    middle = [{"functionCall": {"partialArgs": [one], "willContinue": True}} for one in pieces]
    return ends(streamed(head, *middle, {"functionCall": {}}))


def test_streamed_arguments_of_every_type() -> None:
    assert pieces_of(
        {"jsonPath": "$.text", "stringValue": "one ", "willContinue": True},
        {"jsonPath": "$.text", "stringValue": "two"},
        {"jsonPath": "$.deep.list[0].name", "stringValue": "x"},
        {"jsonPath": "$.deep.list[1]['a.b']", "numberValue": 2.5},
        {"jsonPath": '$["quoted"]', "boolValue": False},
        {"jsonPath": "$.none", "nullValue": "NULL_VALUE"},
        {"jsonPath": "$.text"},
    ) == [
        {
            "text": "one two",
            "deep": {"list": [{"name": "x"}, {"a.b": 2.5}]},
            "quoted": False,
            "none": None,
        }
    ]


@pytest.mark.parametrize(
    "piece",
    [
        {"stringValue": "no path"},
        {"jsonPath": "$", "stringValue": "the root"},
        {"jsonPath": "$.a[7]", "stringValue": "a gap"},
        {"jsonPath": "$.*", "stringValue": "x"} | {"jsonPath": "$..a"},
        {"jsonPath": "$.ok.inner", "stringValue": "below a text"},
        {"jsonPath": "$.a" + ".a" * 80, "stringValue": "too deep"},
        {"jsonPath": "$.nothing"},
        "no object",
    ],
)
def test_a_piece_without_a_place_makes_the_call_unusable(piece: Any) -> None:  # A2-1
    (arguments,) = pieces_of({"jsonPath": "$.ok", "stringValue": "x"}, piece)
    assert arguments == [piece]  # no object: the call is refused and not run on half of it


def test_a_streamed_call_that_does_not_end() -> None:
    head = {"functionCall": {"name": "a", "willContinue": True}, "thoughtSignature": SIGNATURE}
    found = streamed(head, call("b"))
    assert [e.index for e in found if isinstance(e, CallEnd)] == [0, 1]
    assert ProviderBlob(0, {"thoughtSignature": SIGNATURE}) in found


def test_arguments_as_text_and_a_part_that_belongs_to_no_call() -> None:
    found = streamed(
        {"functionCall": {"partialArgs": []}}, {"functionCall": {"name": "a", "args": '{"b":1}'}}
    )
    assert ends(found) == [{"b": 1}]


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        (counts(100, 5, thoughts=7, cached=60),
         Usage(input=40, cache_read=60, output=5, reasoning=7)),
        ({"promptTokenCount": 10, "candidatesTokenCount": 9, "thoughtsTokenCount": 4,
          "totalTokenCount": 19}, Usage(input=10, output=5, reasoning=4)),
        ({"promptTokenCount": 5, "cachedContentTokenCount": 9}, Usage(cache_read=5)),
        ({"promptTokenCount": -3, "candidatesTokenCount": 2.0, "thoughtsTokenCount": "x"},
         Usage(output=2)),
        ({"promptTokenCount": 10**400}, Usage(input=2**53 - 1)),
        ({"trafficType": "ON_DEMAND"}, None),
    ],
)  # fmt: skip
def test_usage_in_disjoint_classes(fields: dict[str, Any], usage: Usage | None) -> None:  # B8
    assert read_usage(fields) == usage


def test_usage_is_told_when_it_changes() -> None:
    first, second = counts(9, 1), counts(9, 2)
    found = events(
        *(data(response(say("a"), usage=one)) for one in (first, first, second)),
        data(response(finish="STOP")),
    )
    reports = [event.usage for event in found if isinstance(event, UsageReport)]
    assert reports == [Usage(input=9, output=1), Usage(input=9, output=2)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(max_size=4), JSON), max_size=4), st.booleans())
@settings(max_examples=40)
def test_elements_of_an_array_at_every_split(values: list[dict[str, Any]], pretty: bool) -> None:
    whole = json.dumps(values, indent=1 if pretty else None, ensure_ascii=pretty).encode(
        "utf-8", "surrogatepass"
    )
    decoder = ElementDecoder()
    found = [one for byte in one_byte_each(whole) for one in decoder.feed(byte)]
    assert found == ElementDecoder().feed(whole)
    assert [json.loads(one) for one in found] == values
    assert not decoder.is_open


def test_an_element_is_bounded() -> None:
    decoder = ElementDecoder(100)
    assert decoder.feed(b"[" + b" " * 1000 + b'{"a":1}') == [b'{"a":1}']
    with pytest.raises(EventTooLarge):
        decoder.feed(b',{"a":"' + b"x" * 100)


PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": JSON,
        "thought": JSON,
        "thoughtSignature": JSON,
        "functionCall": st.fixed_dictionaries(
            {}, optional={"name": JSON, "args": JSON, "partialArgs": JSON, "willContinue": JSON}
        ),
    },
)
RESPONSES = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "content": st.fixed_dictionaries({}, optional={"parts": st.lists(PARTS)}),
                    "finishReason": JSON,
                    "index": JSON,
                },
            )
        )
        | JSON,
        "usageMetadata": JSON,
        "promptFeedback": JSON,
        "error": JSON,
    },
)


@given(st.lists(RESPONSES | JSON, max_size=4))
def test_garbage_gives_events_or_one_failure(responses: list[Any]) -> None:
    found, failure = outcome(*(data(one) for one in responses))
    assert (failure is None) == any(isinstance(event, Finish) for event in found)


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_a_failure(body: bytes) -> None:
    with pytest.raises(ModelFailure):
        events(body)
