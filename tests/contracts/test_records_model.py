"""Every `RecordStorage` against a model that is a plain dictionary."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.record_stores import RECORD_STORES
from vaala_storage.records import Namespace, Query, Record, RecordStorage, Scalar

SPACE = Namespace("space", ("kind", "tags"))

keys = st.text("aA\x00é数\ud7ff\U0010ffff", min_size=0, max_size=3)
kinds: st.SearchStrategy[Scalar] = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, 1, 1.0, 0.5, 2**80, -(2**63)]), st.text("ab1")
)
values = st.fixed_dictionaries(
    {}, optional={"kind": kinds, "tags": st.lists(st.text("ab", max_size=1), max_size=3)}
)
records = st.builds(Record, keys, values, st.integers(-3, 3))
queries = st.builds(
    Query,
    start=st.none() | keys,
    end=st.none() | keys,
    prefix=st.none() | keys,
    order=st.sampled_from(("key", "updated_at")),
    reverse=st.booleans(),
    where=st.fixed_dictionaries({}, optional={"kind": kinds, "tags": st.text("ab", max_size=1)}),
)


@dataclass(frozen=True)
class Put:
    records: list[Record]


@dataclass(frozen=True)
class Remove:
    keys: list[str]


@dataclass(frozen=True)
class RemoveRange:
    start: str
    end: str | None


@dataclass(frozen=True)
class Look:
    query: Query
    limit: int
    between: list[Record]
    """Written after the first page."""


Step: TypeAlias = "Put | Remove | RemoveRange | Look"
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Put, st.lists(records, min_size=1, max_size=8)),
    st.builds(Remove, st.lists(keys, max_size=3)),
    st.builds(RemoveRange, keys, st.none() | keys),
    st.builds(Look, queries, st.integers(1, 4), st.lists(records, max_size=2)),
)


def same(one: object, other: object) -> bool:
    """Equal as JSON values: true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def matches(record: Record, query: Query) -> bool:
    key, fields = record.key, record.value
    return (
        (query.start is None or key >= query.start)
        and (query.end is None or key < query.end)
        and (query.prefix is None or key.startswith(query.prefix))
        and all(
            value in found if isinstance(found := fields.get(name), list) else same(found, value)
            for name, value in query.where.items()
        )
    )


@dataclass
class Model:
    kept: dict[str, Record] = field(default_factory=dict)

    def list(self, query: Query) -> list[Record]:
        found = [record for record in self.kept.values() if matches(record, query)]
        by_key = query.order == "key"
        found.sort(key=lambda r: (0 if by_key else r.updated_at, r.key), reverse=query.reverse)
        return found

    def put(self, new: Sequence[Record]) -> None:
        self.kept |= {record.key: record for record in new}


async def apply(step: Step, store: RecordStorage, model: Model) -> None:
    match step:
        case Put(new):
            await store.mset("space", new)
            model.put(new)
        case Remove(gone):
            await store.mdelete("space", gone)
            for key in gone:
                model.kept.pop(key, None)
        case RemoveRange(start, end):
            gone = [key for key in model.kept if start <= key and (end is None or key < end)]
            assert await store.delete_range("space", start, end) == len(gone)
            for key in gone:
                del model.kept[key]
        case Look():
            await look(step, store, model)


async def look(step: Look, store: RecordStorage, model: Model) -> None:
    before = model.list(step.query)
    page = await store.list("space", step.query, limit=step.limit)
    first = list(page.records)
    assert first == before[: step.limit]
    assert (page.cursor is None) == (len(before) <= step.limit)
    assert await store.count("space", where=step.query.where) == len(
        model.list(Query(where=step.query.where))
    )
    await store.mset("space", step.between)
    model.put(step.between)
    rest: list[Record] = []
    while page.cursor is not None:
        page = await store.list("space", step.query, cursor=page.cursor, limit=step.limit)
        rest += page.records
    shown = [record.key for record in first + rest]
    assert len(shown) == len(set(shown))
    if len(before) > step.limit:
        touched = {record.key for record in step.between}
        calm = [record for record in before[step.limit :] if record.key not in touched]
        assert [record for record in rest if record.key not in touched] == calm
        assert {record.key for record in rest} <= {r.key for r in model.list(step.query)}


@pytest.mark.parametrize("name", sorted(RECORD_STORES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(steps, max_size=12))
def test_every_store_behaves_like_a_dictionary(name: str, script: list[Step]) -> None:
    async def play() -> None:
        model = Model()
        with tempfile.TemporaryDirectory() as directory:
            async with RECORD_STORES[name](Path(directory), (SPACE,)) as store:
                for step in script:
                    await apply(step, store, model)
                wanted: dict[str, Any] = dict(model.kept)
                assert await store.mget("space", list(wanted)) == wanted
                for order in ("key", "updated_at"):
                    await check_order(store, model, order)

    trio.run(play)


async def check_order(
    store: RecordStorage, model: Model, order: Literal["key", "updated_at"]
) -> None:
    query = Query(order=order)
    page = await store.list("space", query, limit=1000)
    assert list(page.records) == model.list(query)
