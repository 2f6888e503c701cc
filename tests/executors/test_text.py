"""From bytes to clean text."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala_executors import TextCleaner, clean, fold_lines

CASES = {
    "plain": (b"a\tb\nc\n", "a\tb\nc\n"),
    "nul": (b"a\0b", "a␀b"),  # D5-1
    "not utf-8": (b"\xff\xfe", "\ufffd\ufffd"),
    "title, screen, clipboard": (b"\x1b]0;pwn\x07\x1b[2J\x1b]52;c;ZWNobw==\x07hi", "hi"),  # D5-2
    "string ended by ST": (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    "colours": (b"\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx", "red x"),
    "private modes": (b"\x1b[?25l\x1b[?2004hx\x1b[>c", "x"),
    "charset, save, reset": (b"\x1b(B\x1b7\x1bcx\x1b=", "x"),
    "c1 in utf-8": ("\x9b31mred\x9d0;t\x07x\x85".encode(), "redx"),
    "device control": (b"\x1bP1$r0m\x1b\\a\x1b_G\x1b\\b\x1b^p\x1b\\c\x1bXs\x1b\\d", "abcd"),
    "string never ended": (b"\x1b]0;all that follows\nnext line", "\nnext line"),
    "string broken off by a sequence": (b"\x1b]0;t\x1b[31mred", "red"),
    "string cancelled": (b"\x1b]0;t\x18x", "x"),
    "sequence with a newline inside": (b"\x1b[31\nx", "\nx"),
    "sequence broken off by escape": (b"\x1b[3\x1b[31mx", "x"),
    "escape at the end": (b"x\x1b", "x"),
    "other controls": (b"\a\b\v\f\x0e\x0f\x7fx", "x"),
    "bidirectional": ("a\u202eb\u2066c\u200f".encode(), "a\\u202eb\\u2066c\\u200f"),
    "cjk and emoji": ("数据 🙂‍👩".encode(), "数据 🙂‍👩"),
    "cut character": ("数".encode()[:2], "\ufffd"),
    "windows lines": (b"a\r\nb\r\n", "a\nb\n"),
    "progress": (b"get 10%\rget 50%\rget 100%\ndone\n", "get 100%\ndone\n"),
    "progress that ends with return": (b"10%\r20%\r", "20%"),
    "progress cleared": (b"10%\r\x1b[Kdone\r\n", "done\n"),
    "only returns": (b"\r\r\n", "\n"),
}


@pytest.mark.parametrize(("data", "text"), CASES.values(), ids=CASES)
def test_clean(data: bytes, text: str) -> None:
    assert clean(data) == text


@pytest.mark.parametrize("data", [data for data, _ in CASES.values()], ids=CASES)
def test_sequences_cut_anywhere(data: bytes) -> None:
    for cut in range(len(data) + 1):
        assert streamed(data[:cut], data[cut:]) == clean(data)
    assert streamed(*[data[at : at + 1] for at in range(len(data))]) == clean(data)


def streamed(*pieces: bytes) -> str:
    cleaner = TextCleaner()
    return fold_lines("".join(map(cleaner.feed, pieces)) + cleaner.finish())


ODD = st.lists(
    st.sampled_from([b"\x1b", b"[", b"]", b"0;", b"m", b"\x07", b"\\", b"\n", b"\r", b"\0", b"\x9b",
                     b"\xc2\x9b", b"\xc2", b"x", b"P", "数".encode(), "\u202e".encode()])
).map(b"".join)  # fmt: skip


@given(ODD, st.lists(st.integers(0, 40)))
def test_cuts_do_not_matter_and_nothing_dangerous_is_left(data: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[begin:end] for begin, end in pairwise(edges)]
    text = streamed(*pieces)
    assert text == clean(data)
    assert not [c for c in text if c not in "\t\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    assert "\u202e" not in text
    text.encode()


def test_random_bytes() -> None:
    data = random.Random(7).randbytes(4096)  # D5-1
    text = clean(data)
    assert len(text) > 500, "junk does not swallow what follows it"
    text.encode()


def test_a_long_string_is_taken_out_whole_but_not_for_ever() -> None:
    assert clean(b"\x1b]52;c;" + b"Q" * 100_000 + b"\x07hi") == "hi"
    assert clean(b"\x1b]52;c;" + b"Q" * 200_000 + b"hi").endswith("hi") is False
    assert streamed(b"\x1b]52;c;" + b"Q" * 200_000, b"hi") == "hi"


def test_long_text_without_controls_is_cheap() -> None:
    text = "数据 " * 100_000
    cleaner = TextCleaner()
    assert cleaner.feed(text.encode()) == text
