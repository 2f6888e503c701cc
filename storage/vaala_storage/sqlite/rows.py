"""Running a SELECT; the columns of a row have the types that the schema gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

import apsw

Parameter: TypeAlias = "bytes | int | float | str | None"
Row: TypeAlias = tuple[Any, ...]


def select(
    connection: apsw.Connection, sql: str, parameters: Sequence[Parameter] = ()
) -> Iterator[Row]:
    """Run a statement and yield its rows as they are found."""
    return cast("Iterator[Row]", connection.execute(sql, tuple(parameters)))


def select_all(
    connection: apsw.Connection, sql: str, parameters: Sequence[Parameter] = ()
) -> list[Row]:
    """Run a statement to its end, so that what it walks may then be changed."""
    return list(select(connection, sql, parameters))


def first(
    connection: apsw.Connection, sql: str, parameters: Sequence[Parameter] = ()
) -> Row | None:
    """Run a statement to its end and return its first row."""
    return next(iter(select_all(connection, sql, parameters)), None)


def value(connection: apsw.Connection, sql: str, parameters: Sequence[Parameter] = ()) -> Any:
    """Run a statement to its end and return the first column of its first row, else None."""
    found = first(connection, sql, parameters)
    return None if found is None else found[0]
