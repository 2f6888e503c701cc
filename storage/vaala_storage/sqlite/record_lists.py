"""Lists of records: the SQL of one page, which always walks an index in the order asked for."""

from __future__ import annotations

from collections.abc import Mapping

import apsw
from msgspec import Struct, field

from vaala_protocol import decode
from vaala_storage.record_rules import Cell, Position, key_bounds
from vaala_storage.records import Query, Record, RecordPage
from vaala_storage.sqlite.limits import SELECTIVITY_ROWS_MAX
from vaala_storage.sqlite.rows import Parameter, select_all, value
from vaala_storage.sqlite.schema import Table


class Ask(Struct, frozen=True):
    table: Table
    query: Query
    where: Mapping[str, Cell]
    position: Position | None
    limit: int


class Statement(Struct):
    """A SELECT that grows by conditions; values only ever go in as parameters."""

    source: str
    conditions: list[str] = field(default_factory=list[str])
    parameters: list[Parameter] = field(default_factory=list[Parameter])

    def add(self, condition: str, *parameters: Parameter) -> None:
        self.conditions.append(condition)
        self.parameters += parameters

    def text(self, columns: str, tail: str = "") -> str:
        return f"SELECT {columns} FROM {self.source} WHERE {' AND '.join(self.conditions)} {tail}"


def page(ask: Ask, connection: apsw.Connection) -> RecordPage:
    """Read one page, and one row more to tell whether there is another."""
    writes = value(connection, "SELECT count FROM record_writes")
    sql, parameters = page_sql(ask, connection)
    rows = select_all(connection, sql, parameters)
    records = tuple(Record(key, decode(data), at) for key, data, at in rows[: ask.limit])
    if len(rows) <= ask.limit:
        return RecordPage(records, None)
    as_of = writes if ask.position is None else ask.position.as_of
    return RecordPage(records, Position.after(ask.query, records[-1], as_of).cursor())


def page_sql(ask: Ask, connection: apsw.Connection) -> tuple[str, list[Parameter]]:
    """Return the statement of a page with its parameters."""
    by_time = ask.query.order == "updated_at"
    statement, walked = _walked(ask, connection)
    _bound(statement, ask, walked)
    direction = " DESC" if ask.query.reverse else ""
    order = f"{walked}.updated_at{direction}, " if by_time else ""
    return (
        statement.text(
            "r.key, r.value, r.updated_at", f"ORDER BY {order}{walked}.key{direction} LIMIT ?"
        ),
        [*statement.parameters, ask.limit + 1],
    )


def count(table: Table, where: Mapping[str, Cell], connection: apsw.Connection) -> int:
    """Count records, by the index of the rarest filter."""
    if where:
        statement = _filtered(table, where, connection, "record_cells c")
    else:
        statement = Statement("records r", ["r.namespace = ?"], [table.id])
    counted: int = value(connection, statement.text("count(*)"), statement.parameters)
    return counted


def _walked(ask: Ask, connection: apsw.Connection) -> tuple[Statement, str]:
    """Return what to walk, with its filters, and the alias of the walked table."""
    by_time = ask.query.order == "updated_at"
    if not ask.where:
        index = "records_by_time" if by_time else "records_by_key"
        source = f"records r INDEXED BY {index}"
        return Statement(source, ["r.namespace = ?"], [ask.table.id]), "r"
    index = "INDEXED BY record_cells_by_time" if by_time else "NOT INDEXED"
    # CROSS JOIN keeps the order of the two: the cells lead, the records are looked up.
    source = f"record_cells c {index} CROSS JOIN records r ON r.id = c.record"
    return _filtered(ask.table, ask.where, connection, source), "c"


def _filtered(
    table: Table, where: Mapping[str, Cell], connection: apsw.Connection, source: str
) -> Statement:
    """Return a walk of the cells ``c`` of the rarest filter that looks the other filters up."""
    leading, *others = sorted(where, key=lambda name: _rows(connection, table, name, where[name]))
    statement = Statement(source)
    statement.add("c.field = ? AND c.value = ?", table.fields[leading], where[leading])
    for name in others:
        statement.add(
            "EXISTS (SELECT 1 FROM record_cells o "
            "WHERE o.field = ? AND o.value = ? AND o.key = c.key)",
            table.fields[name],
            where[name],
        )
    return statement


def _rows(connection: apsw.Connection, table: Table, name: str, cell: Cell) -> int:
    """Count the records with a value, up to a bound: enough to see which filter is rare."""
    found: int = value(
        connection,
        "SELECT count(*) FROM (SELECT 1 FROM record_cells WHERE field = ? AND value = ? LIMIT ?)",
        (table.fields[name], cell, SELECTIVITY_ROWS_MAX),
    )
    return found


def _bound(statement: Statement, ask: Ask, walked: str) -> None:
    """Add the bounds of the keys and where the last page ended."""
    start, end = key_bounds(ask.query)
    if start:
        statement.add(f"{walked}.key >= ?", start)
    if end is not None:
        statement.add(f"{walked}.key < ?", end)
    last = ask.position
    if last is None:
        return
    beyond = "<" if ask.query.reverse else ">"
    if ask.query.order == "key":
        statement.add(f"{walked}.key {beyond} ?", last.key)
    else:
        statement.add(
            f"({walked}.updated_at, {walked}.key) {beyond} (?, ?) AND r.moved <= ?",
            last.updated_at,
            last.key,
            last.as_of,
        )
