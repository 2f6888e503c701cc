"""`RecordStorage` in SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import apsw

from vaala_protocol import decode, encode
from vaala_storage.cursors import check_limit
from vaala_storage.record_rules import Cell, cells, conditions, read_position
from vaala_storage.records import ALL, Query, Record, RecordPage, RecordStorage, Scalar
from vaala_storage.sqlite import record_lists
from vaala_storage.sqlite.access import Access
from vaala_storage.sqlite.rows import first, select_all, value
from vaala_storage.sqlite.schema import Table

_NO_CONDITION: Mapping[str, Scalar] = MappingProxyType({})
_UPSERT = """
INSERT INTO records (namespace, key, updated_at, moved, value) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, key) DO UPDATE SET
    moved = iif(updated_at = excluded.updated_at, moved, excluded.moved),
    updated_at = excluded.updated_at, value = excluded.value
RETURNING id
"""
_Cells = set[tuple[int, Cell]]


class SqliteRecords(RecordStorage):
    """Writes are durable as `open_sqlite` was told by ``sync``.

    A page costs what it holds, in either order, with or without one filter; with several, the
    rarest leads and the others are looked up. Bounds of keys within a list by time are applied
    while it is walked.
    """

    def __init__(self, access: Access, tables: Iterable[Table]) -> None:
        self._access = access
        self._tables = {table.namespace.name: table for table in tables}

    async def mset(self, namespace: str, records: Iterable[Record]) -> None:
        table = self._table(namespace)
        # Encoded here: a record that cannot be stored raises before anything is written, and the
        # caller may change its values afterwards.
        rows = [(record, encode(record.value), _cells(table, record)) for record in records]
        await self._access.write(partial(_put, table, rows))

    async def mget(self, namespace: str, keys: Sequence[str]) -> Mapping[str, Record]:
        table, wanted = self._table(namespace), tuple(keys)

        def work(connection: apsw.Connection) -> dict[str, Record]:
            found = (_get(connection, table, key) for key in wanted)
            return {record.key: record for record in found if record is not None}

        return await self._access.read(work)

    async def mdelete(self, namespace: str, keys: Sequence[str]) -> None:
        await self._access.write(partial(_delete, self._table(namespace), tuple(keys)))

    async def delete_range(self, namespace: str, start: str, end: str | None) -> int:
        table = self._table(namespace)

        def work(connection: apsw.Connection) -> int:
            keys = select_all(
                connection,
                "SELECT key FROM records WHERE namespace = ?1 AND key >= ?2 "
                "AND (?3 IS NULL OR key < ?3)",
                (table.id, start, end),
            )
            return _delete(table, [key for (key,) in keys], connection)

        return await self._access.write(work)

    async def list(
        self, namespace: str, query: Query = ALL, *, cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        table = self._table(namespace)
        check_limit(limit)
        page = record_lists.Ask(
            table,
            query,
            conditions(table.namespace, query.where),
            read_position(cursor, query),
            limit,
        )
        return await self._access.read(partial(record_lists.page, page))

    async def count(self, namespace: str, *, where: Mapping[str, Scalar] = _NO_CONDITION) -> int:
        table = self._table(namespace)
        wanted = conditions(table.namespace, where)
        return await self._access.read(partial(record_lists.count, table, wanted))

    def _table(self, namespace: str) -> Table:
        try:
            return self._tables[namespace]
        except KeyError:
            raise ValueError(f"{namespace}: not declared as a namespace") from None


def _cells(table: Table, record: Record) -> _Cells:
    return {
        (table.fields[name], cell)
        for name, found in cells(table.namespace, record.value).items()
        for cell in found
    }


def _get(connection: apsw.Connection, table: Table, key: str) -> Record | None:
    row = first(
        connection,
        "SELECT value, updated_at FROM records WHERE namespace = ? AND key = ?",
        (table.id, key),
    )
    return None if row is None else Record(key, decode(row[0]), row[1])


def _put(
    table: Table, rows: Sequence[tuple[Record, bytes, _Cells]], connection: apsw.Connection
) -> None:
    writes = value(connection, "UPDATE record_writes SET count = count + 1 RETURNING count")
    for record, data, new in rows:
        old = _get(connection, table, record.key)
        moved = old is None or old.updated_at != record.updated_at
        parameters = (table.id, record.key, record.updated_at, writes, data)
        row = value(connection, _UPSERT, parameters)
        before = _cells(table, old) if old is not None else set[tuple[int, Cell]]()
        _remove_cells(connection, record.key, before if moved else before - new)
        connection.executemany(
            "INSERT INTO record_cells (field, value, key, updated_at, record) "
            "VALUES (?, ?, ?, ?, ?)",
            [
                (field, cell, record.key, record.updated_at, row)
                for field, cell in (new if moved else new - before)
            ],
        )


def _delete(table: Table, keys: Sequence[str], connection: apsw.Connection) -> int:
    removed = 0
    for key in keys:
        old = _get(connection, table, key)
        if old is not None:
            _remove_cells(connection, key, _cells(table, old))
            connection.execute(
                "DELETE FROM records WHERE namespace = ? AND key = ?", (table.id, key)
            )
            removed += 1
    return removed


def _remove_cells(connection: apsw.Connection, key: str, gone: _Cells) -> None:
    connection.executemany(
        "DELETE FROM record_cells WHERE field = ? AND value = ? AND key = ?",
        [(field, cell, key) for field, cell in gone],
    )
