"""The SSE decoder against the rules of the WHATWG, at every split."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala.models.sse import EventTooLarge, SseDecoder, SseEvent


def decode(*pieces: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


def data(*pieces: bytes) -> list[bytes]:
    return [event.data for event in decode(*pieces)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_at_every_split(end: bytes) -> None:  # B1-1 B1-2
    body = end.join([b": note", b"event: a", "data: 你好🦀".encode(), b"", b"data:2", b"", b""])
    expected = [SseEvent("a", "你好🦀".encode()), SseEvent("", b"2")]
    assert decode(body) == expected
    assert decode(*(body[at : at + 1] for at in range(len(body)))) == expected
    for cut in range(len(body)):
        assert decode(body[:cut], body[cut:]) == expected


def test_a_lone_cr_ends_its_line_at_once() -> None:
    assert data(b"data: 1\r\r") == [b"1"]
    assert data(b"data: 1\r", b"\n\r", b"\ndata: 2\n\n") == [b"1", b"2"]


def test_comments_are_no_events() -> None:  # B1-3
    assert data(b": OPENROUTER PROCESSING\n\n:\n\ndata: 1\n: x\n\n") == [b"1"]


def test_field_forms() -> None:  # B1-4
    body = b'event: what\ndata:{"x":1}\nid: 7\nretry: 10\nfoo: bar\nnoise\n\ndata:  two\n\n'
    assert decode(body) == [SseEvent("what", b'{"x":1}'), SseEvent("", b" two")]


def test_separators_inside_the_data_do_not_cut_it() -> None:  # B1-5
    text = '{"t":"a\u2028b\u0085c\u000bd\x1ce"}'
    assert data(f"data: {text}\n\n".encode()) == [text.encode()]


def test_several_data_lines_are_joined() -> None:
    assert data(b"data: a\ndata:\ndata: b\n\n") == [b"a\n\nb"]


def test_an_event_without_data_is_none_and_its_name_is_forgotten() -> None:
    assert decode(b"event: ping\n\ndata: 1\n\n") == [SseEvent("", b"1")]


def test_byte_order_mark_once_at_the_start() -> None:
    bom = b"\xef\xbb\xbf"
    body = bom + b"data: 1\n\n" + bom + b"data: 2\n\n"
    assert data(*(body[at : at + 1] for at in range(len(body)))) == [b"1"]


def test_an_invalid_byte_spoils_only_itself() -> None:  # B1-7
    (first, second) = decode(b"data: a\xffb\n\ndata: c\n\n")
    assert (first.text, second.text) == ("a\ufffdb", "c")


def test_the_rest_without_a_blank_line_is_dropped_unless_flushed() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\n\ndata: 2") == [SseEvent("", b"1")]
    assert decoder.flush() == [SseEvent("", b"2")]
    assert decoder.flush() == []


@pytest.mark.parametrize("body", [b"data: " + b"x" * 200, b"data: xxxx\n" * 40, b"data:\n" * 200])
def test_an_event_is_bounded(body: bytes) -> None:
    decoder = SseDecoder(event_bytes_max=100)
    with pytest.raises(EventTooLarge, match="larger than 100 bytes"):
        decoder.feed(body)


_LINE = st.sampled_from(
    [b"data: a", b"data:", b": c", b"event: e", b"x", b"", b"", b"\xff", b"data: \xe2\x80\xa8"]
)


@given(st.lists(st.tuples(_LINE, st.sampled_from([b"\n", b"\r\n", b"\r"]))), st.integers())
def test_splits_never_matter(lines: list[tuple[bytes, bytes]], seed: int) -> None:
    body = b"".join(line + end for line, end in lines) + b"data: last\n\n"
    rng = random.Random(seed)
    pieces = []
    at = 0
    while at < len(body):
        size = rng.randint(1, 4)
        pieces.append(body[at : at + size])
        at += size
    assert decode(*pieces) == decode(body)
