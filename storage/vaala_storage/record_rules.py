"""What every `RecordStorage` must agree on: bounds of keys, positions, values of fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from vaala_storage.cursors import read_cursor, write_cursor
from vaala_storage.records import Namespace, Query, Record, Scalar

Cell: TypeAlias = "bytes | int | float | str"
"""A field's value as it is compared: 1 equals 1.0, and neither True nor "1"."""

_INTEGER_MAX = 2**63 - 1


def cell(value: Scalar) -> Cell:
    """Return the comparable form; raises ``ValueError`` for a number that JSON does not have."""
    match value:
        case None:
            return b""
        case bool():
            return b"true" if value else b"false"
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is no JSON number")
        case float() if value.is_integer():
            return cell(int(value))
        case int() if not -_INTEGER_MAX <= value <= _INTEGER_MAX:
            return b"%d" % value
        case _:
            return value


def cells(namespace: Namespace, value: Mapping[str, Any]) -> dict[str, frozenset[Cell]]:
    """Return the cells of each declared field; a missing field counts as None.

    Raises ``ValueError`` when a declared field holds neither a scalar nor a list of strings.
    """
    found: dict[str, frozenset[Cell]] = {}
    for name in namespace.fields:
        match value.get(name):
            case None | bool() | int() | float() | str() as scalar:
                found[name] = frozenset((cell(scalar),))
            case (list() | tuple()) as items if all(isinstance(item, str) for item in items):
                found[name] = frozenset(items)
            case other:
                raise ValueError(
                    f"{namespace.name}.{name}: a declared field holds a scalar or a list of "
                    f"strings, not {type(other).__name__}"
                )
    return found


def conditions(namespace: Namespace, where: Mapping[str, Scalar]) -> dict[str, Cell]:
    """Return the cell each field must have; raises ``ValueError`` for an undeclared field."""
    unknown = [name for name in where if name not in namespace.fields]
    if unknown:
        raise ValueError(f"{namespace.name}: not declared as fields: {', '.join(unknown)}")
    return {name: cell(value) for name, value in where.items()}


def prefix_end(prefix: str) -> str | None:
    """Return the first key after all that begin with ``prefix``; None when there is no end."""
    for index in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[index]) + 1
        if 0xD800 <= code <= 0xDFFF:  # surrogates are not characters
            code = 0xE000
        if code <= 0x10FFFF:
            return prefix[:index] + chr(code)
    return None


def key_bounds(query: Query) -> tuple[str, str | None]:
    """Return ``start <= key < end`` of a query, its prefix included (None: no end)."""
    start, ends = query.start or "", [query.end]
    if query.prefix:
        start = max(start, query.prefix)
        ends.append(prefix_end(query.prefix))
    return start, min((end for end in ends if end is not None), default=None)


class Position(Struct, frozen=True):
    """Where a page ended.

    A list by update time shows what stood there when it began: ``as_of`` is the count of writes
    then, and records that got another time since are passed over, so none is seen twice.
    """

    order: Literal["key", "updated_at"]
    reverse: bool
    updated_at: int
    key: str
    as_of: int

    @classmethod
    def after(cls, query: Query, record: Record, as_of: int) -> Position:
        return cls(query.order, query.reverse, record.updated_at, record.key, as_of)

    def cursor(self) -> str:
        return write_cursor((self.order, self.reverse, self.updated_at, self.key, self.as_of))


def read_position(cursor: str | None, query: Query) -> Position | None:
    """Return where to go on; raises ``ValueError`` for a cursor of another order."""
    if cursor is None:
        return None
    fields = read_cursor(cursor, tuple[Literal["key", "updated_at"], bool, int, str, int])
    position = Position(*fields)
    if (position.order, position.reverse) != (query.order, query.reverse):
        raise ValueError("the cursor belongs to a list in another order")
    return position
