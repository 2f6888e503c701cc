"""What lists and searches cost: no plan reads or sorts more than the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import apsw
import pytest
import trio

from vaala_storage.record_rules import Position, conditions
from vaala_storage.records import Namespace, Query, Record, Scalar
from vaala_storage.search import Document
from vaala_storage.sqlite import limits, open_sqlite, schema
from vaala_storage.sqlite.record_lists import Ask, page_sql
from vaala_storage.sqlite.rows import Parameter

SPACE = Namespace("space", ("archived", "tags", "kind"))
COUNT = 3000

Parameters: TypeAlias = tuple[Parameter, ...]

FILTERS: Sequence[Mapping[str, Scalar]] = [
    {},
    {"archived": False},
    {"tags": "even"},
    {"archived": False, "tags": "even"},
    {"archived": False, "tags": "even", "kind": None},
]
QUERIES: Sequence[Query] = [
    Query(order=order, reverse=reverse, where=where)
    for order in ("key", "updated_at")
    for reverse in (False, True)
    for where in FILTERS
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cost") / "a.db"

    async def fill() -> None:
        async with open_sqlite(made, namespaces=[SPACE], sync="off") as database:
            await database.records.mset("space", [record(number) for number in range(COUNT)])
            rare = [Record(f"r{n}", {"archived": False, "tags": ["rare"]}, -n) for n in range(3)]
            await database.records.mset("space", rare)

    trio.run(fill)
    return made


def record(number: int) -> Record:
    tags = ["even"] if number % 2 == 0 else []
    return Record(
        f"{number:05}", {"archived": number % 10 == 0, "tags": tags}, number * 7919 % COUNT
    )


def statement(
    path: Path, query: Query, position: Position | None
) -> tuple[apsw.Connection, str, Parameters]:
    connection = apsw.Connection(str(path))
    [table] = schema.readable(connection, [SPACE])
    ask = Ask(table, query, conditions(SPACE, query.where), position, 50)
    sql, parameters = page_sql(ask, connection)
    return connection, sql, tuple(parameters)


@pytest.mark.parametrize("query", QUERIES, ids=str)
@pytest.mark.parametrize("later", [False, True], ids=["first page", "later page"])
def test_a_page_walks_an_index_in_its_order(path: Path, query: Query, later: bool) -> None:
    position = Position(query.order, query.reverse, 1500, "01500", 1) if later else None
    connection, sql, parameters = statement(path, query, position)
    steps = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert not [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step], steps
    walk = steps[0]
    bound = {
        ("key", True): "(field=? AND value=? AND key",
        ("key", False): "(namespace=? AND key",
        ("updated_at", True): "(field=? AND value=? AND (updated_at,key)",
        ("updated_at", False): "(namespace=? AND (updated_at,key)",
    }[query.order, bool(query.where)]
    assert bound in walk if later else walk.startswith("SEARCH"), walk


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_page_takes_few_steps(path: Path, query: Query) -> None:
    position = Position(query.order, query.reverse, 1500, "01500", 1)
    connection, sql, parameters = statement(path, query, position)
    # Steps of SQLite's machine are the same on every run, unlike time. A row takes about 20, and
    # a further filter about 15 for each row that is walked: two for each of the page here.
    assert steps(connection, sql, parameters) < 51 * 150


@pytest.mark.parametrize("names", [("archived", "tags"), ("tags", "archived")])
def test_the_rarest_filter_leads(path: Path, names: Sequence[str]) -> None:
    values: Mapping[str, Scalar] = {"archived": False, "tags": "rare"}
    query = Query(order="updated_at", reverse=True, where={name: values[name] for name in names})
    connection, sql, parameters = statement(path, query, None)
    assert steps(connection, sql, parameters) < 500


def steps(connection: apsw.Connection, sql: str, parameters: Parameters) -> int:
    taken: list[int] = []

    def step() -> bool:
        taken.append(1)
        return False

    connection.set_progress_handler(step, 1)
    connection.execute(sql, parameters).fetchall()
    return len(taken)


async def test_a_search_for_what_is_everywhere_ranks_the_newest_first(tmp_path: Path) -> None:
    count = limits.CANDIDATES_MAX * 2 + 10
    async with open_sqlite(tmp_path / "s.db", sync="off") as database:
        index = database.search
        # The oldest would be the best match of all.
        await index.put([Document("oldest", "g", {"text": "apple apple apple"})])
        await index.put(
            [Document(str(number), "g", {"text": "apple pie and more"}) for number in range(count)]
        )
        page = await index.query("apple", limit=100)
        assert page.hits[0].id == str(count - 1)
        seen = [hit.id for hit in page.hits]
        await index.put([Document("late", "g", {"text": "apple"})])
        while page.cursor is not None:
            page = await index.query("apple", cursor=page.cursor, limit=100)
            seen += [hit.id for hit in page.hits]
        assert sorted(seen) == sorted(["oldest", *map(str, range(count))])
        # It leads the last block of candidates, the eleven oldest.
        assert seen[-11] == "oldest"


async def test_an_old_conversation_is_found(tmp_path: Path) -> None:  # G5-3
    async with open_sqlite(tmp_path / "s.db", sync="off") as database:
        texts = ["the first one spoke of zebras", *["of nothing in particular"] * 500]
        await database.search.put(
            [Document(str(n), str(n), {"text": text}) for n, text in enumerate(texts)]
        )
        assert [hit.group for hit in (await database.search.query("zebra")).hits] == ["0"]
