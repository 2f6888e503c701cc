"""`RecordStorage`: JSON records in namespaces, by key, listed by key or by update time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

Scalar: TypeAlias = "bool | int | float | str | None"


class Record(Struct, frozen=True):
    key: str
    value: Mapping[str, Any]
    updated_at: int
    """Given by the writer; milliseconds since the epoch."""


class Namespace(Struct, frozen=True):
    """Declares a namespace and the fields of its records that `list` can filter by.

    A declared field is a top-level field of the record holding a scalar, or a list of strings, of
    which one must match. A missing field counts as None; 1 equals 1.0, but neither True nor "1".
    """

    name: str
    fields: tuple[str, ...] = ()


class RecordPage(Struct, frozen=True):
    records: tuple[Record, ...]
    cursor: str | None
    """Pass it with the same arguments to get the next page; None: this was the last."""


class Query(Struct, frozen=True):
    """Which records, in which order: ``start <= key < end``; equal update times go by key."""

    start: str | None = None
    end: str | None = None
    prefix: str | None = None
    order: Literal["key", "updated_at"] = "key"
    reverse: bool = False
    where: Mapping[str, Scalar] = field(default_factory=dict)
    """A declared field and the value that it, or one string of its list, must have."""


ALL = Query()


class RecordStorage(ABC):
    """All writes of one call are durable, all or none, when it returns."""

    @abstractmethod
    async def mset(self, namespace: str, records: Iterable[Record]) -> None:
        """Put records, replacing those with the same key."""

    @abstractmethod
    async def mget(self, namespace: str, keys: Sequence[str]) -> Mapping[str, Record]:
        """Return the records that exist."""

    @abstractmethod
    async def mdelete(self, namespace: str, keys: Sequence[str]) -> None:
        """Remove records; no error for those that are not there."""

    @abstractmethod
    async def delete_range(self, namespace: str, start: str, end: str | None) -> int:
        """Remove records with ``start <= key < end`` and return how many (None: to the end)."""

    @abstractmethod
    async def list(
        self, namespace: str, query: Query = ALL, *, cursor: str | None = None, limit: int = 100
    ) -> RecordPage:
        """Return a page of the records that ``query`` asks for.

        A record that is written between two pages is seen at most once: a list by time passes
        over records that got another time since it began. Raises ``ValueError`` for an undeclared
        namespace or field, a limit below 1, and for a cursor of another order.
        """

    @abstractmethod
    async def count(self, namespace: str, *, where: Mapping[str, Scalar] = {}) -> int:
        """Return how many records match."""

    async def set(self, namespace: str, record: Record) -> None:
        await self.mset(namespace, (record,))

    async def get(self, namespace: str, key: str) -> Record | None:
        return (await self.mget(namespace, (key,))).get(key)

    async def delete(self, namespace: str, key: str) -> None:
        await self.mdelete(namespace, (key,))
