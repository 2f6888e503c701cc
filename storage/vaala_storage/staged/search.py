"""`SearchIndex` in memory: every document is looked at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import trio
from msgspec import Struct

from vaala_storage.cursors import check_limit, read_cursor, write_cursor
from vaala_storage.search import Document, Hit, HitPage, SearchIndex
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.limits import CHARS_PER_TURN, VALUE_BYTES
from vaala_storage.text.fold import fold, storable
from vaala_storage.text.query import Word, parse
from vaala_storage.text.snippet import best_match

_MATCHES_COUNTED_MAX = 10


class _Kept(Struct, frozen=True):
    number: int
    document: Document
    folded: Mapping[str, str]

    @property
    def chars(self) -> int:
        return sum(map(len, self.folded.values()))

    @property
    def size(self) -> int:
        texts = (*self.folded.values(), *self.document.fields.values())
        return sum(map(len, texts)) + VALUE_BYTES


class StagedSearch(SearchIndex):
    """Finds what the index in SQLite finds; scores differ (matches against length of text)."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._kept: dict[str, _Kept] = {}
        self._numbers = itertools.count()

    async def put(self, documents: Iterable[Document]) -> None:
        new = {document.id: self._keep(document) for document in documents}
        await trio.lowlevel.checkpoint()
        old = [self._kept[name] for name in new if name in self._kept]
        self._budget.change(_size(new.values()) - _size(old))
        self._kept |= new

    async def delete(self, ids: Sequence[str]) -> None:
        await trio.lowlevel.checkpoint()
        self._delete(ids)

    async def delete_group(self, group: str) -> None:
        await trio.lowlevel.checkpoint()
        self._delete([name for name, kept in self._kept.items() if kept.document.group == group])

    async def query(
        self,
        text: str,
        *,
        groups: Sequence[str] | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> HitPage:
        check_limit(limit)
        (seen,) = (0,) if cursor is None else read_cursor(cursor, tuple[int])
        words = parse(text)
        await trio.lowlevel.checkpoint()
        if not words:
            return HitPage((), None)
        ranked = await self._ranked(words, None if groups is None else frozenset(groups))
        hits = tuple(_hit(words, kept, score) for score, kept in ranked[seen : seen + limit])
        more = len(ranked) > seen + limit
        return HitPage(hits, write_cursor((seen + limit,)) if more else None)

    async def _ranked(
        self, words: Sequence[Word], groups: frozenset[str] | None
    ) -> list[tuple[float, _Kept]]:
        found: list[tuple[float, _Kept]] = []
        chars = 0
        for kept in tuple(self._kept.values()):
            if groups is not None and kept.document.group not in groups:
                continue
            score = _score(words, kept)
            if score is not None:
                found.append((score, kept))
            chars += kept.chars
            if chars > CHARS_PER_TURN:
                chars = 0
                await trio.lowlevel.checkpoint()
        return sorted(found, key=lambda ranked: (-ranked[0], -ranked[1].number))

    def _keep(self, document: Document) -> _Kept:
        texts = {name: storable(text) for name, text in document.fields.items()}
        return _Kept(
            next(self._numbers),
            Document(document.id, document.group, texts),
            {name: fold(text) for name, text in texts.items()},
        )

    def _delete(self, ids: Iterable[str]) -> None:
        removed = [self._kept.pop(name) for name in ids if name in self._kept]
        self._budget.change(-_size(removed))


def _score(words: Sequence[Word], kept: _Kept) -> float | None:
    """Return how well a document matches, None when a word is missing."""
    counted = 0
    for word in words:
        matches = itertools.chain.from_iterable(
            word.pattern.finditer(text) for text in kept.folded.values()
        )
        count = sum(1 for _ in itertools.islice(matches, _MATCHES_COUNTED_MAX))
        if count == 0:
            return None
        counted += count
    return counted / math.sqrt(1 + kept.chars)


def _hit(words: Sequence[Word], kept: _Kept, score: float) -> Hit:
    document = kept.document
    match = best_match(words, document.fields)
    return Hit(document.id, document.group, match.field, match.snippet, score)


def _size(kept: Iterable[_Kept]) -> int:
    return sum(one.size for one in kept)
