"""What every `RecordStorage` does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

import pytest

from tests.contracts.record_stores import RECORD_STORES
from vaala_storage.records import Namespace, Query, Record, RecordPage, RecordStorage, Scalar

NOTES = Namespace("notes", ("archived", "tags", "kind"))
OTHER = Namespace("other")
NEWEST = Query(order="updated_at", reverse=True)


@pytest.fixture(params=sorted(RECORD_STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[RecordStorage]:
    async with RECORD_STORES[request.param](tmp_path, (NOTES, OTHER)) as opened:
        yield opened


def note(key: str, updated_at: int = 0, **fields: object) -> Record:
    return Record(key, fields, updated_at)


async def keys(store: RecordStorage, query: Query, limit: int = 100) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.list("notes", query, cursor=cursor, limit=limit)
        assert len(page.records) <= limit
        found += keys_of(page)
        cursor = page.cursor
        if cursor is None:
            return found


def keys_of(page: RecordPage) -> list[str]:
    return [record.key for record in page.records]


async def test_a_record_is_read_as_it_was_written(store: RecordStorage) -> None:
    value = {"title": "Ünïcode 数据", "n": 1.5, "list": [1, {"deep": None}], "on": True}
    await store.set("notes", Record("k", value, 17))
    assert await store.get("notes", "k") == Record("k", value, 17)


async def test_a_record_is_replaced_whole(store: RecordStorage) -> None:
    await store.set("notes", note("k", 1, a=1, archived=True))
    await store.set("notes", note("k", 2, b=2))
    assert await store.get("notes", "k") == note("k", 2, b=2)
    assert await store.count("notes", where={"archived": True}) == 0


async def test_what_the_caller_changes_later_is_not_stored(store: RecordStorage) -> None:
    value = {"tags": ["a"]}
    await store.set("notes", Record("k", value, 0))
    value["tags"].append("b")
    assert await store.get("notes", "k") == Record("k", {"tags": ["a"]}, 0)


async def test_many_are_read_at_once_and_missing_ones_left_out(store: RecordStorage) -> None:
    await store.mset("notes", [note("a"), note("b")])
    assert set(await store.mget("notes", ["a", "x", "b", "a"])) == {"a", "b"}
    assert await store.get("notes", "x") is None


async def test_the_last_record_of_a_key_in_one_call_counts(store: RecordStorage) -> None:
    await store.mset("notes", [note("a", 1, kind="old"), note("a", 2, kind="new")])
    assert await keys(store, Query(where={"kind": "old"})) == []
    assert await keys(store, Query(where={"kind": "new"})) == ["a"]


async def test_deleted_records_are_gone_from_every_list(store: RecordStorage) -> None:
    await store.mset("notes", [note("a", tags=["x", "y"]), note("b", tags=["x"])])
    await store.mdelete("notes", ["a", "never there"])
    await store.delete("notes", "also never")
    assert await store.get("notes", "a") is None
    assert await keys(store, Query(where={"tags": "x"})) == ["b"]
    assert await keys(store, NEWEST) == ["b"]


async def test_a_range_is_deleted_up_to_its_end(store: RecordStorage) -> None:
    await store.mset("notes", [note(key, kind="k") for key in "abcde"])
    assert await store.delete_range("notes", "b", "d") == 2
    assert await keys(store, Query(where={"kind": "k"})) == ["a", "d", "e"]
    assert await store.delete_range("notes", "d", None) == 2
    assert await keys(store, Query()) == ["a"]


async def test_namespaces_are_apart(store: RecordStorage) -> None:
    await store.set("notes", note("k", here=1))
    await store.set("other", note("k", there=1))
    await store.delete("notes", "k")
    assert await store.get("other", "k") == note("k", there=1)
    assert await store.count("notes") == 0


async def test_lists_go_by_key_in_both_directions(store: RecordStorage) -> None:
    # By code points, so a small letter comes after every capital.
    await store.mset("notes", [note(key) for key in ("b", "a", "Z", "é", "数", "\U0001f600")])
    expected = ["Z", "a", "b", "é", "数", "\U0001f600"]
    assert await keys(store, Query(), limit=2) == expected
    assert await keys(store, Query(reverse=True), limit=4) == expected[::-1]


async def test_lists_go_by_time_and_equal_times_by_key(store: RecordStorage) -> None:
    await store.mset("notes", [note("c", 5), note("a", 5), note("b", 9), note("d", -1)])
    assert await keys(store, Query(order="updated_at"), limit=1) == ["d", "a", "c", "b"]
    assert await keys(store, NEWEST, limit=3) == ["b", "c", "a", "d"]


async def test_the_last_page_has_no_cursor_even_when_it_is_full(store: RecordStorage) -> None:
    await store.mset("notes", [note(key) for key in "abcd"])
    page = await store.list("notes", limit=2)
    assert page.cursor is not None
    page = await store.list("notes", cursor=page.cursor, limit=2)
    assert (keys_of(page), page.cursor) == (["c", "d"], None)


@pytest.mark.parametrize("order", ["key", "updated_at"])
async def test_lists_can_be_bounded_by_keys(
    store: RecordStorage, order: Literal["key", "updated_at"]
) -> None:
    await store.mset("notes", [note(key) for key in ("a", "ab", "abc", "ac", "b")])
    assert await keys(store, Query(start="ab", end="ac", order=order)) == ["ab", "abc"]
    assert await keys(store, Query(prefix="ab", order=order)) == ["ab", "abc"]
    assert await keys(store, Query(prefix="a", start="abb", order=order)) == ["abc", "ac"]
    assert await keys(store, Query(prefix="a", end="ab", order=order)) == ["a"]


@pytest.mark.parametrize("last", ["\ud7ff", "\U0010ffff", "%", "_", "*"])
async def test_a_prefix_is_taken_literally_to_its_end(store: RecordStorage, last: str) -> None:
    prefix = f"a{last}"
    await store.mset("notes", [note(key) for key in ("a", "ax", prefix, f"{prefix}z", "b")])
    assert set(await keys(store, Query(prefix=prefix))) == {prefix, f"{prefix}z"}


async def test_a_field_matches_by_value_and_type(store: RecordStorage) -> None:
    values: dict[str, Scalar] = {
        "true": True,
        "one": 1,
        "text": "1",
        "null": None,
        "big": 2**70,
        "half": 0.5,
    }
    await store.mset("notes", [note(key, kind=value) for key, value in values.items()])
    await store.set("notes", note("missing"))
    for key, value in values.items():
        expected = ["missing", "null"] if value is None else [key]
        assert await keys(store, Query(where={"kind": value})) == expected
    assert await keys(store, Query(where={"kind": 1.0})) == ["one"]
    assert await keys(store, Query(where={"kind": False})) == []


async def test_a_list_field_matches_by_one_of_its_strings(store: RecordStorage) -> None:
    await store.set("notes", note("a", tags=["x", "y", "x"]))
    await store.set("notes", note("b", tags=["y"]))
    await store.set("notes", note("none", tags=[]))
    assert await keys(store, Query(where={"tags": "x"})) == ["a"]
    assert await keys(store, Query(where={"tags": "y"}), limit=1) == ["a", "b"]
    assert await keys(store, Query(where={"tags": None})) == []


async def test_all_filters_must_match_in_every_order(store: RecordStorage) -> None:
    await store.mset(
        "notes",
        [note(str(i), -i, archived=i % 2 == 0, tags=[f"t{i % 3}", "all"]) for i in range(12)],
    )
    where: dict[str, Scalar] = {"archived": True, "tags": "t0"}
    assert await keys(store, Query(where=where), limit=1) == ["0", "6"]
    assert await keys(store, Query("0", order="updated_at", where=where)) == ["6", "0"]
    assert await store.count("notes", where=where) == 2
    assert await store.count("notes", where={"tags": "all"}) == await store.count("notes") == 12


async def test_a_rewrite_moves_a_record_in_filtered_lists(store: RecordStorage) -> None:
    await store.mset("notes", [note("a", 1, kind="k"), note("b", 2, kind="k")])
    await store.set("notes", note("a", 3, kind="k"))
    by_time = Query(order="updated_at", where={"kind": "k"})
    assert await keys(store, by_time) == ["b", "a"]


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_record_that_moves_between_pages_is_seen_once(
    store: RecordStorage, reverse: bool
) -> None:
    await store.mset("notes", [note(key, at) for at, key in enumerate("abcdef")])
    query = Query(order="updated_at", reverse=reverse)
    page = await store.list("notes", query, limit=2)
    # What was seen moves to where the list has still to come.
    await store.set("notes", note(page.records[0].key, -10 if reverse else 10))
    await store.set("notes", note("new", -11 if reverse else 11))
    rest: list[str] = []
    while page.cursor is not None:
        page = await store.list("notes", query, cursor=page.cursor, limit=2)
        rest += keys_of(page)
    assert rest == (["d", "c", "b", "a"] if reverse else ["c", "d", "e", "f"])


async def test_a_record_that_keeps_its_time_keeps_its_place(store: RecordStorage) -> None:
    await store.mset("notes", [note(key, at) for at, key in enumerate("abcd")])
    page = await store.list("notes", NEWEST, limit=2)
    await store.set("notes", note("b", 1, kind="renamed"))
    await store.delete("notes", "a")
    page = await store.list("notes", NEWEST, cursor=page.cursor, limit=2)
    assert keys_of(page) == ["b"]


@pytest.mark.parametrize("cursor", ["", "x", "!!", "e30", "W10", "\ud800", "WzEsMl0"])
async def test_a_made_up_cursor_is_refused(store: RecordStorage, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        await store.list("notes", cursor=cursor)


async def test_a_cursor_of_another_order_is_refused(store: RecordStorage) -> None:
    await store.mset("notes", [note("a"), note("b")])
    page = await store.list("notes", limit=1)
    for query in (NEWEST, Query(reverse=True), Query(order="updated_at")):
        with pytest.raises(ValueError, match="another order"):
            await store.list("notes", query, cursor=page.cursor)


async def test_what_is_not_declared_is_refused(store: RecordStorage) -> None:
    for where in ({"title": 1}, {"archived": True, "title": 1}):
        with pytest.raises(ValueError, match="title"):
            await store.list("notes", Query(where=where))
        with pytest.raises(ValueError, match="title"):
            await store.count("notes", where=where)
    with pytest.raises(ValueError, match="elsewhere"):
        await store.get("elsewhere", "k")


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], ["a", None], float("inf")])
async def test_a_field_that_cannot_be_filtered_writes_nothing(
    store: RecordStorage, value: object
) -> None:
    with pytest.raises(ValueError, match=r"kind|number"):
        await store.mset("notes", [note("good"), note("bad", kind=value)])
    assert await store.count("notes") == 0


async def test_a_value_that_is_no_json_writes_nothing(store: RecordStorage) -> None:
    with pytest.raises((TypeError, ValueError)):
        await store.mset("notes", [note("good"), note("bad", x=object())])
    assert await store.count("notes") == 0


async def test_a_page_of_nothing_is_refused(store: RecordStorage) -> None:
    with pytest.raises(ValueError, match="limit"):
        await store.list("notes", limit=0)
