"""The tables, and what an opening checks and prepares in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import apsw
from msgspec import Struct

from vaala_protocol import decode
from vaala_storage.errors import ReadOnly, StorageCorrupt
from vaala_storage.record_rules import cells
from vaala_storage.records import Namespace
from vaala_storage.sqlite.rows import first, select, value

APPLICATION_ID: Final = 0x7661_616C
"""Marks the file as ours ("vaal"), so that no other program's database is taken for a broken one
of ours."""
SCHEMA_VERSION: Final = 1

# Values of declared fields are rows of record_cells, not columns: a list is several rows, and a
# newly declared field is filled in without a change of tables. A record's `moved` is the count of
# writes when it last got another time (see record_rules.Position).
_RECORDS = """
CREATE TABLE namespaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE record_fields (
    id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, name TEXT NOT NULL,
    UNIQUE (namespace, name));
CREATE TABLE record_writes (count INTEGER NOT NULL);
INSERT INTO record_writes VALUES (0);
CREATE TABLE records (
    id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, key TEXT NOT NULL,
    updated_at INTEGER NOT NULL, moved INTEGER NOT NULL, value BLOB NOT NULL);
CREATE UNIQUE INDEX records_by_key ON records (namespace, key);
CREATE INDEX records_by_time ON records (namespace, updated_at, key);
CREATE TABLE record_cells (
    field INTEGER NOT NULL, value ANY NOT NULL, key TEXT NOT NULL,
    updated_at INTEGER NOT NULL, record INTEGER NOT NULL,
    PRIMARY KEY (field, value, key)) STRICT, WITHOUT ROWID;
CREATE INDEX record_cells_by_time ON record_cells (field, value, updated_at, key, record);
"""
_LOG = """
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, name TEXT NOT NULL, last INTEGER NOT NULL,
    UNIQUE (path, name));
CREATE TABLE entries (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, entry BLOB NOT NULL,
    PRIMARY KEY (stream, seq)) WITHOUT ROWID;
"""
# A blob without a name is being written, or was left so by a crash; one may have several names.
_BLOBS = """
CREATE TABLE blobs (id INTEGER PRIMARY KEY, size INTEGER NOT NULL, names INTEGER NOT NULL);
CREATE INDEX blobs_unnamed ON blobs (id) WHERE names = 0;
CREATE TABLE blob_names (
    path TEXT NOT NULL, key TEXT NOT NULL, blob INTEGER NOT NULL,
    PRIMARY KEY (path, key)) WITHOUT ROWID;
CREATE TABLE blob_parts (
    blob INTEGER NOT NULL, start INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (blob, start));
"""
# Texts come to FTS5 already folded and cut (see text.words), so its tokenizer only splits at
# spaces; the index of one-character beginnings makes a single CJK character a look-up.
_SEARCH = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, grp TEXT NOT NULL,
    fields BLOB NOT NULL);
CREATE INDEX documents_by_group ON documents (grp);
CREATE VIRTUAL TABLE words USING fts5 (
    text, content='', contentless_delete=1, tokenize='ascii', prefix='1');
"""
_PROBED: Final = {
    "records": ("id",),
    "record_cells": ("field", "value", "key"),
    "entries": ("stream", "seq"),
    "documents": ("id",),
    "words": ("rowid",),
    "blob_parts": ("rowid",),
}


class Table(Struct, frozen=True):
    """A declared namespace with its numbers in the database."""

    id: int
    namespace: Namespace
    fields: Mapping[str, int]

    @property
    def is_exact(self) -> bool:
        """Whether the fields that are indexed are those that are declared."""
        return set(self.fields) == set(self.namespace.fields)


def create_or_check(connection: apsw.Connection) -> None:
    """Make the tables of a new file; raise when those of an old one are not ours."""
    if connection.pragma("user_version") == 0 and not _has_tables(connection):
        connection.execute(_RECORDS + _LOG + _BLOBS + _SEARCH)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA_VERSION)
    check_ours(connection)


def check_ours(connection: apsw.Connection) -> None:
    """Raise what `check_version` raises unless the file is new and empty."""
    if _has_tables(connection):
        check_version(connection)


def check_version(connection: apsw.Connection) -> None:
    """Raise `StorageCorrupt` for what is not ours, `ReadOnly` for a newer version."""
    version = connection.pragma("user_version")
    if connection.pragma("application_id") != APPLICATION_ID:
        raise StorageCorrupt(f"{connection.filename}: not a database of vaala")
    if version > SCHEMA_VERSION:
        raise ReadOnly(
            f"{connection.filename}: version {version}, this program knows {SCHEMA_VERSION}; "
            "use the newer program, or move the file away"
        )


def probe(connection: apsw.Connection) -> None:
    """Read the schema and both ends of the large tables: cheap, and finds a file cut short."""
    for table, order in _PROBED.items():
        for direction in (" ASC", " DESC"):
            by = ", ".join(column + direction for column in order)
            first(connection, f"SELECT * FROM {table} ORDER BY {by} LIMIT 1")


def declare(connection: apsw.Connection, namespaces: Iterable[Namespace]) -> list[Table]:
    """Register namespaces and fields; index a new field of the records that are there."""
    return [_declare(connection, namespace) for namespace in namespaces]


def prepared(connection: apsw.Connection, namespaces: Iterable[Namespace]) -> list[Table] | None:
    """Look declared namespaces up; None when something is still to be made.

    Raises what `check_version` raises.
    """
    if not _has_tables(connection):
        return None
    check_version(connection)
    tables = [_look_up(connection, namespace) for namespace in namespaces]
    found = [table for table in tables if table is not None and table.is_exact]
    return found if len(found) == len(tables) else None


def readable(connection: apsw.Connection, namespaces: Iterable[Namespace]) -> list[Table]:
    """Look declared namespaces up; raises `ReadOnly` when one is not there to be read."""
    check_version(connection)
    tables: list[Table] = []
    for namespace in namespaces:
        table = _look_up(connection, namespace)
        if table is None or set(namespace.fields) - table.fields.keys():
            raise ReadOnly(
                f"{connection.filename}: has no index for {namespace.name} as declared; "
                "open it once for writing"
            )
        tables.append(table)
    return tables


def _has_tables(connection: apsw.Connection) -> bool:
    return bool(value(connection, "SELECT count(*) FROM sqlite_schema"))


def _look_up(connection: apsw.Connection, namespace: Namespace) -> Table | None:
    found = value(connection, "SELECT id FROM namespaces WHERE name = ?", (namespace.name,))
    if found is None:
        return None
    rows = select(connection, "SELECT name, id FROM record_fields WHERE namespace = ?", (found,))
    return Table(found, namespace, {name: number for name, number in rows})


def _declare(connection: apsw.Connection, namespace: Namespace) -> Table:
    connection.execute("INSERT OR IGNORE INTO namespaces (name) VALUES (?)", (namespace.name,))
    old = _look_up(connection, namespace)
    assert old is not None
    for name in set(old.fields) - set(namespace.fields):
        # It would go stale: this program does not write it.
        connection.execute("DELETE FROM record_cells WHERE field = ?", (old.fields[name],))
        connection.execute("DELETE FROM record_fields WHERE id = ?", (old.fields[name],))
    new = tuple(name for name in namespace.fields if name not in old.fields)
    for name in new:
        connection.execute(
            "INSERT INTO record_fields (namespace, name) VALUES (?, ?)", (old.id, name)
        )
    table = _look_up(connection, namespace)
    assert table is not None
    if new:
        _index(connection, table, Namespace(namespace.name, new))
    return table


def _index(connection: apsw.Connection, table: Table, fields: Namespace) -> None:
    rows = select(
        connection,
        "SELECT id, key, updated_at, value FROM records WHERE namespace = ?",
        (table.id,),
    )
    connection.executemany(
        "INSERT INTO record_cells (field, value, key, updated_at, record) VALUES (?, ?, ?, ?, ?)",
        (
            (table.fields[name], cell, key, updated_at, record)
            for record, key, updated_at, data in rows
            for name, values in cells(fields, decode(data)).items()
            for cell in values
        ),
    )
