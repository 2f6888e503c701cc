"""`SearchIndex` in SQLite, on FTS5."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial

import apsw
from msgspec import Struct

from vaala_protocol import decode, encode
from vaala_storage.cursors import check_limit, read_cursor, write_cursor
from vaala_storage.search import Document, Hit, HitPage, SearchIndex
from vaala_storage.sqlite.access import Access
from vaala_storage.sqlite.limits import CANDIDATES_MAX
from vaala_storage.sqlite.ranking import FUNCTION
from vaala_storage.sqlite.rows import Parameter, first, select_all, value
from vaala_storage.text.fold import fold, storable
from vaala_storage.text.query import Word, parse
from vaala_storage.text.snippet import best_match
from vaala_storage.text.words import tokens

_BETWEEN_FIELDS = " \u00a7 "
"""A token that no query can hold (it is no letter): no phrase reaches from a field to the next."""

_ROWID_END = 2**63 - 1
_BOUNDS = (
    "SELECT min(low), max(high) FROM (SELECT min(id) AS low, max(id) AS high FROM documents "
    "WHERE grp IN (SELECT value FROM json_each(?)) GROUP BY grp)"
)
"""Between which documents those of some groups are: of few groups, they are close together."""
_IN_GROUPS = (
    "AND rowid >= ?4 AND +rowid IN "
    "(SELECT id FROM documents WHERE grp IN (SELECT value FROM json_each(?5)))"
)


class SqliteSearch(SearchIndex):
    """A page of hits costs a bounded ranking, whatever the number of matches.

    Matches are taken 1,000 at a time, from the document put last to the one put first; each
    thousand is ranked by its own text: matches in short texts weigh more. So with up to 1,000
    matches the order is by score alone, and a word that is everywhere shows the best of the
    newest first. Paging on reaches every match; a document put again meanwhile counts as new.
    Of each field the first 262,144 characters are indexed. Puts of a few hundred documents at a
    time keep other writes waiting for less than a second.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    async def put(self, documents: Iterable[Document]) -> None:
        await self._access.write(partial(_put, tuple(documents)))

    async def delete(self, ids: Sequence[str]) -> None:
        await self._access.write(partial(_delete, "name", tuple(ids)))

    async def delete_group(self, group: str) -> None:
        await self._access.write(partial(_delete, "grp", (group,)))

    async def query(
        self,
        text: str,
        *,
        groups: Sequence[str] | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> HitPage:
        check_limit(limit)
        below, seen = (_ROWID_END, 0) if cursor is None else read_cursor(cursor, tuple[int, int])
        words = parse(text)
        wanted = None if groups is None else tuple(groups)
        if not words:
            return HitPage((), None)
        return await self._access.read(
            partial(_page, _Ask(words, wanted, limit), _Place(below, seen))
        )


class _Ask(Struct, frozen=True):
    words: tuple[Word, ...]
    groups: tuple[str, ...] | None
    limit: int


class _Place(Struct, frozen=True):
    """How far a search has come: candidates are ``rowid < below``, ``seen`` of them shown."""

    below: int
    seen: int


def _put(documents: Sequence[Document], connection: apsw.Connection) -> None:
    for document in documents:
        fields = {name: storable(text) for name, text in document.fields.items()}
        data = encode(fields)
        row = first(
            connection, "SELECT id, grp, fields FROM documents WHERE name = ?", (document.id,)
        )
        if row is not None:
            if row[1:] == (document.group, data):
                continue
            _remove(connection, row[0])
        connection.execute(
            "INSERT INTO documents (name, grp, fields) VALUES (?, ?, ?)",
            (document.id, document.group, data),
        )
        found = (" ".join(tokens(fold(text))) for text in fields.values())
        connection.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            (connection.last_insert_rowid(), _BETWEEN_FIELDS.join(found)),
        )


def _delete(column: str, wanted: Sequence[str], connection: apsw.Connection) -> None:
    for text in wanted:
        sql = f"SELECT id FROM documents WHERE {column} = ?"
        for (document,) in select_all(connection, sql, (text,)):
            _remove(connection, document)


def _remove(connection: apsw.Connection, document: int) -> None:
    connection.execute("DELETE FROM documents WHERE id = ?", (document,))
    connection.execute("DELETE FROM words WHERE rowid = ?", (document,))


def _page(ask: _Ask, place: _Place, connection: apsw.Connection) -> HitPage:
    hits: list[Hit] = []
    while True:
        ranked = _candidates(ask, place, connection)
        wanted = ranked[place.seen : place.seen + ask.limit - len(hits)]
        hits += [_hit(ask, connection, document, score) for score, document in wanted]
        place = _Place(place.below, place.seen + len(wanted))
        if place.seen >= len(ranked):
            if len(ranked) < CANDIDATES_MAX:
                return HitPage(tuple(hits), None)
            place = _Place(min(document for _, document in ranked), 0)
        if len(hits) >= ask.limit:
            return HitPage(tuple(hits), _cursor(ask, place, connection))


def _cursor(ask: _Ask, place: _Place, connection: apsw.Connection) -> str:
    below = place.below
    if below == _ROWID_END:  # documents put later must not shift those that were there
        below = value(connection, "SELECT max(id) + 1 FROM documents")
    return write_cursor((below, place.seen))


def _candidates(ask: _Ask, place: _Place, connection: apsw.Connection) -> list[tuple[float, int]]:
    """Return score and number of the newest matches, best first."""
    match = " AND ".join(word.phrase for word in ask.words)
    parameters: list[Parameter] = [match, place.below, CANDIDATES_MAX]
    if ask.groups is not None:
        groups = json.dumps(ask.groups)
        [(low, high)] = select_all(connection, _BOUNDS, (groups,))
        if low is None:
            return []
        parameters = [match, min(place.below, high + 1), CANDIDATES_MAX, low, groups]
    rows = select_all(
        connection,
        f"SELECT {FUNCTION}(words), rowid FROM words WHERE words MATCH ?1 AND rowid < ?2 "
        f"{'' if ask.groups is None else _IN_GROUPS} ORDER BY rowid DESC LIMIT ?3",
        parameters,
    )
    return sorted(((score, document) for score, document in rows), reverse=True)


def _hit(ask: _Ask, connection: apsw.Connection, document: int, score: float) -> Hit:
    [(name, group, data)] = select_all(
        connection, "SELECT name, grp, fields FROM documents WHERE id = ?", (document,)
    )
    match = best_match(ask.words, decode(data))
    return Hit(name, group, match.field, match.snippet, score)
