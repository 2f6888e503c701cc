"""Folding, words and snippets of search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala_storage.text.fold import fold, fold_traced
from vaala_storage.text.limits import SNIPPET_CHARS_MAX, TOKEN_CHARS_MAX
from vaala_storage.text.query import parse
from vaala_storage.text.snippet import best_match, snippet
from vaala_storage.text.words import tokens

letters = st.text(
    st.sampled_from("aAéße\u0301\u0300ﬁİ数가\u1100\u1161\u11a8がﾞｶ \u00ad👩\u200d🏽🇩🇪")
)


@given(letters)
def test_tracing_folds_the_same_text(text: str) -> None:
    traced = fold_traced(text)
    assert traced.text == fold(text)
    places = [traced.original(place) for place in range(len(traced.text) + 1)]
    assert places == sorted(places)
    assert all(0 <= place <= len(text) for place in places)


@given(letters)
def test_folding_is_done_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(letters, letters)
def test_a_place_is_traced_to_the_character_it_came_from(before: str, after: str) -> None:
    text = f"{before} needle {after}"
    traced = fold_traced(text)
    place = traced.text.index("needle")
    assert text[traced.original(place) :].startswith("needle")


def test_tokens_of_mixed_text() -> None:
    assert list(tokens(fold("Use 数据库 v2.0, ok_go x"))) == (
        ["use", "数据", "据库", "库", "v2", "0", "ok", "go", "x"]
    )
    assert list(tokens("a" * 500)) == ["a" * TOKEN_CHARS_MAX]


@given(st.text())
def test_a_phrase_is_made_of_letters_and_digits(text: str) -> None:
    for word in parse(text):
        body = word.phrase.removesuffix("*")
        assert body[0] == body[-1] == '"'
        assert not set(body[1:-1]) & set("\"'*^:(){}+-\0")


@given(letters, st.integers(0, 50))
def test_a_snippet_is_a_part_of_the_text_around_the_place(text: str, place: int) -> None:
    text *= 20
    place = min(place, len(text))
    found = snippet(text, place)
    assert found in text
    assert len(found) <= SNIPPET_CHARS_MAX
    if len(text) <= SNIPPET_CHARS_MAX:
        assert found == text


@pytest.mark.parametrize(
    "cluster", ["e\u0301\u0302", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "❤\ufe0f", "की"]
)
def test_a_snippet_cuts_no_character(cluster: str) -> None:
    for shift in range(len(cluster) + 2):
        text = "x" * shift + cluster * 100 + "y" + cluster * 100
        found = snippet(text, text.index("y"))
        assert found.replace(cluster, "").strip("x") == "y"


def test_the_field_with_the_most_words_is_shown() -> None:
    fields = {"title": "red thing", "text": "a red and blue thing", "more": "red blue"}
    match = best_match(parse("blue red"), fields)
    assert (match.field, match.snippet) == ("text", fields["text"])


def test_a_document_of_which_no_word_is_found_is_shown_from_its_start() -> None:
    match = best_match(parse("green"), {"title": "red"})
    assert (match.field, match.snippet) == ("title", "red")
    assert best_match(parse("green"), {}).snippet == ""
