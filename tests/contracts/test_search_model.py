"""Every `SearchIndex` against a matcher that only knows strings."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.record_stores import SEARCH_INDEXES
from vaala_storage.search import Document, SearchIndex

LETTERS = "abAB"
HAN = "数据库"
MARKS = " .-_"

texts = st.text(LETTERS + HAN + MARKS, max_size=12)
documents = st.lists(
    st.builds(
        Document,
        st.sampled_from("12345678"),
        st.sampled_from("xyz"),
        st.fixed_dictionaries({}, optional={"title": texts, "text": texts}),
    ),
    max_size=10,
)
queries = st.text(LETTERS + HAN + MARKS, min_size=1, max_size=6)


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[Document], list[str]]:
    """Draw documents and queries, most of which are cut out of a document."""
    docs = draw(documents)
    asked = draw(st.lists(queries, min_size=1, max_size=3))
    for text in (text for document in docs for text in document.fields.values()):
        start, end = draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))))
        asked.append(text[start:end])
    return docs, asked


def pieces(text: str) -> list[str]:
    """Cut text where letters, Han and everything else meet."""
    found: list[str] = []
    kind = ""
    for character in text.lower():
        now = "han" if character in HAN else "letters" if character.isalnum() else ""
        if now and now == kind:
            found[-1] += character
        elif now:
            found.append(character)
        kind = now
    return found


def fits(wanted: str, piece: str, *, first: bool, final: bool, last_word: bool) -> bool:
    """Whether a piece of a query matches a piece of a text, by its place in the query's word."""
    if (wanted[0] in HAN) != (piece[0] in HAN):
        return False
    if wanted[0] in HAN:
        # Inside a longer run; but what comes before or after in the word touches its border.
        if first and final:
            return wanted in piece
        return (
            piece.endswith(wanted)
            if first
            else piece.startswith(wanted)
            if final
            else (piece == wanted)
        )
    return piece.startswith(wanted) if final and last_word else piece == wanted


def occurs(word: list[str], text: list[str], *, last_word: bool) -> bool:
    end = len(word) - 1
    return any(
        all(
            fits(
                wanted,
                text[start + index],
                first=index == 0,
                final=index == end,
                last_word=last_word,
            )
            for index, wanted in enumerate(word)
        )
        for start in range(len(text) - end)
    )


def expected(query: str, document: Document) -> bool:
    words = [found for part in query.split() if (found := pieces(part))]
    fields = [pieces(text) for text in document.fields.values()]
    return bool(words) and all(
        any(occurs(word, text, last_word=word is words[-1]) for text in fields) for word in words
    )


async def all_ids(index: SearchIndex, query: str, groups: list[str] | None) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await index.query(query, groups=groups, cursor=cursor, limit=3)
        ids += [hit.id for hit in page.hits]
        cursor = page.cursor
        if cursor is None:
            return ids


@pytest.mark.parametrize("name", sorted(SEARCH_INDEXES))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    search=searches(),
    groups=st.none() | st.lists(st.sampled_from("xyz"), max_size=2),
    gone=st.lists(st.sampled_from("12345678"), max_size=2),
)
def test_every_index_finds_what_a_plain_matcher_finds(
    name: str,
    search: tuple[list[Document], list[str]],
    groups: list[str] | None,
    gone: list[str],
) -> None:
    docs, asked = search

    async def play() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with SEARCH_INDEXES[name](Path(directory)) as index:
                await index.put(docs)
                await index.delete(gone)
                kept = {doc.id: doc for doc in docs if doc.id not in gone}
                for query in asked:
                    ids = await all_ids(index, query, groups)
                    assert len(ids) == len(set(ids))
                    wanted = {
                        doc.id
                        for doc in kept.values()
                        if (groups is None or doc.group in groups) and expected(query, doc)
                    }
                    assert set(ids) == wanted, query

    trio.run(play)
