"""Text at the borders: storable, bounded, and never blank by surprise."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala.text import cut, first_line, fitting, is_blank, json_bytes, scrub
from vaala_protocol.base import decode, encode

anything = st.text(st.characters())
clean = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(anything)
def test_scrubbed_text_can_be_stored_and_stays_so(text: str) -> None:
    scrubbed = scrub(text)
    assert decode(encode(scrubbed)) == scrubbed
    assert "\0" not in scrubbed
    assert scrub(scrubbed) == scrubbed


@given(clean)
def test_clean_text_is_left_alone(text: str) -> None:
    assert scrub(text) == text


def test_halves_of_a_pair_become_one_character_and_lone_ones_are_marked() -> None:
    assert scrub("\ud83d\ude00") == "\U0001f600"
    assert scrub("a\ud800b\udc00c\0") == "a\ufffdb\ufffdc\ufffd"
    assert scrub("\ufeffx") == "\ufeffx"


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b", "\ufeff", "\u200b \u200b \u200b", "\u3000\u2060\u00a0"]
)
def test_what_shows_nothing_is_blank(text: str) -> None:  # A4-4
    assert is_blank(text)


def test_what_shows_something_is_not_blank() -> None:
    assert not is_blank("\u200b.\u200b")


@given(clean, st.integers(64, 300))
def test_a_cut_text_fits_and_tells_exactly_what_is_missing(text: str, bytes_max: int) -> None:
    short = cut(text, bytes_max)
    assert len(short.encode()) <= max(bytes_max, len(text.encode()))
    if len(text.encode()) <= bytes_max:
        assert short == text
        return
    assert len(short.encode()) <= bytes_max
    notes = [
        note
        for note in re.finditer(r"\n… (\d+) bytes left out …\n", short)
        if text.startswith(short[: note.start()]) and text.endswith(short[note.end() :])
    ]
    kept = [len(short[: note.start()].encode() + short[note.end() :].encode()) for note in notes]
    missing = [int(note[1]) for note in notes]
    assert len(text.encode()) in [a + b for a, b in zip(kept, missing, strict=True)]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 200))
def test_a_fitting_text_is_a_beginning_that_fits(text: str, bytes_max: int) -> None:
    fits = fitting(text, bytes_max)
    assert text.startswith(fits)
    assert json_bytes(fits) <= bytes_max
    if json_bytes(text) <= bytes_max:
        assert fits == text


def test_a_text_that_is_all_escapes_is_used_well() -> None:
    assert fitting("\1" * 1_000, 600) == "\1" * 100


def test_the_first_line_that_says_something() -> None:
    assert first_line("\n  \n  hello  \nworld") == "hello"
    assert first_line("x" * 100, 10) == "x" * 9 + "…"
    assert first_line(" \n") == ""
