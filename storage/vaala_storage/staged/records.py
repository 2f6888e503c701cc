"""`RecordStorage` in memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import trio
from msgspec import Struct, field

from vaala_protocol import decode, encode
from vaala_storage.cursors import check_limit
from vaala_storage.record_rules import (
    Cell,
    Position,
    cells,
    conditions,
    key_bounds,
    read_position,
)
from vaala_storage.records import (
    ALL,
    Namespace,
    Query,
    Record,
    RecordPage,
    RecordStorage,
    Scalar,
)
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.limits import VALUE_BYTES

_NO_CONDITION: Mapping[str, Scalar] = MappingProxyType({})


class _Kept(Struct, frozen=True):
    key: str
    updated_at: int
    data: bytes
    cells: Mapping[str, frozenset[Cell]]
    moved: int
    """The count of writes when the record last got another time."""

    @property
    def size(self) -> int:
        return len(self.key) + len(self.data) + VALUE_BYTES

    def record(self) -> Record:
        return Record(self.key, decode(self.data), self.updated_at)

    def has(self, where: Mapping[str, Cell]) -> bool:
        return all(value in self.cells[name] for name, value in where.items())


class _Table(Struct):
    namespace: Namespace
    kept: dict[str, _Kept] = field(default_factory=dict[str, _Kept])
    writes: int = 0


class StagedRecords(RecordStorage):
    """A page of a list looks at every record of its namespace."""

    def __init__(self, budget: Budget, namespaces: Iterable[Namespace]) -> None:
        self._budget = budget
        self._tables = {namespace.name: _Table(namespace) for namespace in namespaces}

    async def mset(self, namespace: str, records: Iterable[Record]) -> None:
        table = self._table(namespace)
        new = {record.key: self._keep(table, record) for record in records}
        await trio.lowlevel.checkpoint()
        old = {key: table.kept[key] for key in new if key in table.kept}
        self._budget.change(_size(new.values()) - _size(old.values()))
        table.writes += 1
        table.kept |= new

    async def mget(self, namespace: str, keys: Sequence[str]) -> Mapping[str, Record]:
        table = self._table(namespace)
        await trio.lowlevel.checkpoint()
        return {key: table.kept[key].record() for key in keys if key in table.kept}

    async def mdelete(self, namespace: str, keys: Sequence[str]) -> None:
        table = self._table(namespace)
        await trio.lowlevel.checkpoint()
        self._delete(table, keys)

    async def delete_range(self, namespace: str, start: str, end: str | None) -> int:
        table = self._table(namespace)
        await trio.lowlevel.checkpoint()
        keys = [key for key in table.kept if start <= key and (end is None or key < end)]
        self._delete(table, keys)
        return len(keys)

    async def list(
        self, namespace: str, query: Query = ALL, *, cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        table = self._table(namespace)
        check_limit(limit)
        where = conditions(table.namespace, query.where)
        position = read_position(cursor, query)
        await trio.lowlevel.checkpoint()
        start, end = key_bounds(query)
        wanted = (
            kept
            for kept in table.kept.values()
            if kept.key >= start
            and (end is None or kept.key < end)
            and kept.has(where)
            and (position is None or _is_beyond(kept, position))
        )
        first = heapq.nlargest if query.reverse else heapq.nsmallest
        found = first(limit + 1, wanted, key=_by_key if query.order == "key" else _by_time)
        records = tuple(kept.record() for kept in found[:limit])
        if len(found) <= limit:
            return RecordPage(records, None)
        as_of = table.writes if position is None else position.as_of
        return RecordPage(records, Position.after(query, records[-1], as_of).cursor())

    async def count(self, namespace: str, *, where: Mapping[str, Scalar] = _NO_CONDITION) -> int:
        table = self._table(namespace)
        wanted = conditions(table.namespace, where)
        await trio.lowlevel.checkpoint()
        return sum(kept.has(wanted) for kept in table.kept.values())

    def _table(self, namespace: str) -> _Table:
        try:
            return self._tables[namespace]
        except KeyError:
            raise ValueError(f"{namespace}: not declared as a namespace") from None

    def _keep(self, table: _Table, record: Record) -> _Kept:
        old = table.kept.get(record.key)
        stays = old is not None and old.updated_at == record.updated_at
        return _Kept(
            record.key,
            record.updated_at,
            encode(record.value),
            cells(table.namespace, record.value),
            old.moved if old is not None and stays else table.writes + 1,
        )

    def _delete(self, table: _Table, keys: Sequence[str]) -> None:
        removed = [table.kept.pop(key) for key in keys if key in table.kept]
        self._budget.change(-_size(removed))


def _by_key(kept: _Kept) -> str:
    return kept.key


def _by_time(kept: _Kept) -> tuple[int, str]:
    return kept.updated_at, kept.key


def _is_beyond(kept: _Kept, position: Position) -> bool:
    if position.order == "key":
        here, there = (kept.key,), (position.key,)
        return here < there if position.reverse else here > there
    place, end = _by_time(kept), (position.updated_at, position.key)
    beyond = place < end if position.reverse else place > end
    return beyond and kept.moved <= position.as_of


def _size(kept: Iterable[_Kept]) -> int:
    return sum(one.size for one in kept)
