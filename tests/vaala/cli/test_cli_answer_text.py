"""Messages that grow, come again whole, or are taken back: the answer has each character once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala.cli.answer_text import AnswerText


def _answer() -> tuple[AnswerText, list[str]]:
    put: list[str] = []
    return AnswerText(put.append), put


def test_deltas_and_the_whole_message_after_them_are_one_text() -> None:
    answer, put = _answer()
    answer.more("m", 0, "Hel")
    answer.more("m", 3, "lo")
    answer.more("m", 0, "Hello")
    assert "".join(put) == "Hello"


def test_a_delta_that_overlaps_what_came_is_cut() -> None:
    answer, put = _answer()
    answer.more("m", 0, "abc")
    answer.more("m", 1, "bcd")
    assert "".join(put) == "abcd"


def test_messages_are_a_blank_line_apart() -> None:
    answer, put = _answer()
    for name, text in (("a", "one"), ("b", "two\n"), ("c", "three\n\n"), ("d", "four")):
        answer.more(name, 0, text)
    answer.end()
    assert "".join(put) == "one\n\ntwo\n\nthree\n\nfour\n"


def test_a_blank_message_shows_nothing() -> None:
    answer, put = _answer()
    answer.more("a", 0, "\n\n")
    answer.more("b", 0, "text\n")
    answer.end()
    assert "".join(put) == "text\n"


def test_blank_text_at_the_start_comes_with_what_follows_it() -> None:
    answer, put = _answer()
    answer.more("a", 0, "\n")
    answer.more("a", 1, "  ")
    answer.more("a", 3, "x")
    assert "".join(put) == "\n  x"


def test_a_message_from_before_is_skipped() -> None:
    answer, put = _answer()
    answer.skip("old", 3)
    answer.more("old", 0, "old")
    answer.more("new", 0, "new")
    assert "".join(put) == "new"


def test_a_message_that_is_taken_back_is_followed_by_its_second_try() -> None:
    answer, put = _answer()
    answer.more("try1", 0, "Half a sen")
    answer.void("try1")
    answer.more("try2", 0, "Whole.")
    assert "".join(put) == "Half a sen\n\nWhole."


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["Half a sentence."], "Half a sentence."),
        (["Ha", "lf a", " sen", "tence."], "Half a sentence."),
        (["Half a sen"], "Half a sen"),
        (["Half", " an hour."], "Half a sen<again>\n\nHalf an hour."),
        (["Half"], "Half a sen<again>\n\nHalf"),
        (["Whole."], "Half a sen<again>\n\nWhole."),
    ],
)
def test_a_second_try_does_not_repeat_what_was_shown(pieces: list[str], shown: str) -> None:
    put: list[str] = []
    answer = AnswerText(put.append, lambda: put.append("<again>"))
    answer.more("try1", 0, "Half a sen")
    answer.void("try1")
    place = 0
    for piece in pieces:
        answer.more("try2", place, piece)
        place += len(piece)
    answer.more("next", 0, "More.")
    answer.end()
    assert "".join(put) == f"{shown}\n\nMore.\n"


def test_a_second_try_that_is_the_last_message_is_whole() -> None:
    put: list[str] = []
    answer = AnswerText(put.append, lambda: put.append("<again>"))
    answer.more("try1", 0, "Half a sen")
    answer.void("try1")
    answer.more("try2", 0, "Half")
    answer.end()
    assert "".join(put) == "Half a sen<again>\n\nHalf\n"


def test_a_line_of_something_else_between_messages_leaves_one_blank_line() -> None:
    answer, put = _answer()
    answer.broken()
    answer.more("a", 0, "one")
    put.append("\n> a note\n")
    answer.broken()
    answer.more("b", 0, "two")
    assert "".join(put) == "one\n> a note\n\ntwo"


def test_the_end_adds_a_newline_only_where_there_is_none() -> None:
    for text, ended in (("x", "x\n"), ("x\n", "x\n"), ("x\n\n", "x\n\n")):
        answer, put = _answer()
        answer.more("m", 0, text)
        answer.end()
        assert "".join(put) == ended


def test_no_answer_has_no_newline() -> None:
    answer, put = _answer()
    answer.end()
    assert put == []


@given(st.text(min_size=1), st.lists(st.integers(min_value=0, max_value=20)))
def test_any_way_to_cut_a_message_gives_the_message(text: str, cuts: list[int]) -> None:
    answer, put = _answer()
    place = 0
    for length in cuts:
        answer.more("m", place, text[place : place + length])
        place = min(len(text), place + length)
    answer.more("m", 0, text)
    assert "".join(put) == (text if text.strip() else "")
