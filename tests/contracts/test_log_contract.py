"""What every `LogStorage` does, whatever holds the entries."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.contracts.implementations import LOGS, Implementation
from vaala_storage import (
    AlreadyExists,
    Conflict,
    Entry,
    LogStorage,
    NotFound,
    StorageError,
    TooLarge,
)
from vaala_storage.limits import BATCH_BYTES_MAX


@pytest.fixture(params=LOGS, ids=str)
def implementation(request: pytest.FixtureRequest) -> Implementation[LogStorage]:
    found: Implementation[LogStorage] = request.param
    return found


@pytest.fixture
async def log(
    implementation: Implementation[LogStorage], tmp_path: Path
) -> AsyncGenerator[LogStorage]:
    async with implementation.open(tmp_path / "store") as opened:
        yield opened


def numbered(first: int, last: int) -> list[Entry]:
    return [{"n": number} for number in range(first, last + 1)]


async def numbers(log: LogStorage, stream: str = "s", **ask: Any) -> list[int]:
    page = await log.read("p", stream, **ask)
    assert page.damage == ()
    for stored in page.entries:
        assert stored.entry == {"n": stored.seq}
    return [stored.seq for stored in page.entries]


async def test_create_makes_all_streams(log: LogStorage) -> None:
    await log.create("p/q", {"a": numbered(1, 2), "b": [], "c": [{"x": None}]})
    assert await log.streams("p/q") == ("a", "b", "c")
    assert [await log.last("p/q", name) for name in "abc"] == [2, 0, 1]
    assert (await log.read("p/q", "c")).entries[0].entry == {"x": None}


async def test_create_of_an_existing_path_changes_nothing(log: LogStorage) -> None:
    await log.create("p", {"s": numbered(1, 2)})
    with pytest.raises(AlreadyExists, match="p"):
        await log.create("p", {"s": [], "t": []})
    assert await log.streams("p") == ("s",)
    assert await numbers(log) == [1, 2]


async def test_create_needs_a_stream(log: LogStorage) -> None:
    with pytest.raises(ValueError, match="at least one stream"):
        await log.create("p", {})


async def test_create_takes_more_than_one_batch(log: LogStorage) -> None:
    large: list[Entry] = [{"n": n, "x": "x" * 300_000} for n in range(1, 8)]
    await log.create("p", {"s": large})
    page = await log.read("p", "s")
    assert [stored.entry for stored in page.entries] == large
    assert await log.append("p", "s", [{"n": 8}], expected=7) == 8


async def test_create_is_all_or_nothing(log: LogStorage) -> None:
    with pytest.raises(TooLarge):
        await log.create("p", {"a": numbered(1, 2), "b": [{"x": "x" * BATCH_BYTES_MAX}]})
    with pytest.raises(NotFound):
        await log.streams("p")
    await log.create("p", {"a": numbered(1, 2)})


async def test_append_counts_from_one(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    assert await log.append("p", "s", numbered(1, 3), expected=0) == 3
    assert await log.append("p", "s", numbered(4, 4), expected=3) == 4
    assert await numbers(log) == [1, 2, 3, 4]
    assert await log.last("p", "s") == 4


async def test_append_begins_a_new_stream(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    assert await log.append("p", "t", numbered(1, 1), expected=0) == 1
    assert await log.streams("p") == ("s", "t")


async def test_append_to_a_missing_path(log: LogStorage) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await log.append("nowhere", "s", numbered(1, 1), expected=0)
    assert (await log.paths()).paths == ()


async def test_append_checks_what_is_expected(log: LogStorage) -> None:
    await log.create("p", {"s": numbered(1, 3)})
    for wrong in (0, 2, 4):
        with pytest.raises(Conflict) as caught:
            await log.append("p", "s", [{"n": "?"}], expected=wrong)
        assert (caught.value.expected, caught.value.last) == (wrong, 3)
    assert await numbers(log) == [1, 2, 3]


async def test_append_of_nothing_only_checks(log: LogStorage) -> None:
    await log.create("p", {"s": numbered(1, 2)})
    assert await log.append("p", "s", [], expected=2) == 2
    with pytest.raises(Conflict):
        await log.append("p", "s", [], expected=1)
    assert await numbers(log) == [1, 2]


async def test_a_batch_has_a_size_limit(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    half = {"x": "x" * (BATCH_BYTES_MAX // 2)}
    with pytest.raises(TooLarge, match=str(BATCH_BYTES_MAX)[:4]):
        await log.append("p", "s", [half, half], expected=0)
    assert await log.last("p", "s") == 0
    assert await log.append("p", "s", [half], expected=0) == 1


@pytest.mark.parametrize(
    "entry",
    [
        {"text": "line\u2028paragraph\u2029next\u0085vt\u000b\r\n\ttab"},  # G1-5
        {"nul": "a\u0000b", "emoji": "\U0001f600", "rtl": "\u202e"},
        {"deep": [[[[{"a": [1, 2.5, True, False, None, "", {}]}]]]], "neg": -(2**53)},
        {},
    ],
)
async def test_entries_come_back_as_they_were(log: LogStorage, entry: Entry) -> None:
    await log.create("p", {"s": [entry]})
    await log.append("p", "s", [entry, entry], expected=1)
    assert [stored.entry for stored in (await log.read("p", "s")).entries] == [entry] * 3
    newest = await log.read("p", "s", reverse=True, limit=1)
    assert newest.entries[0].entry == entry


async def test_what_json_cannot_hold_is_refused(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    with pytest.raises(ValueError, match="surrogates"):
        await log.append("p", "s", [{"x": "\ud800"}], expected=0)
    assert await log.append("p", "s", [{"x": 1}], expected=0) == 1


@pytest.mark.parametrize("sizes", [[20], [1] * 20, [7, 1, 9, 3]])
async def test_pages_in_both_directions(log: LogStorage, sizes: Sequence[int]) -> None:
    await log.create("p", {"s": []})
    last = 0
    for size in sizes:
        last = await log.append("p", "s", numbered(last + 1, last + size), expected=last)
    everything = list(range(1, 21))
    for after in (None, 0, 1, 6, 13, 19, 20, 99):
        for before in (None, 1, 2, 8, 20, 21, 99):
            wanted = [n for n in everything if (after or 0) < n < (before or 1000)]
            for limit in (1, 5, 20, 100):
                for reverse, seqs in ((False, wanted), (True, wanted[::-1])):
                    asked = (after, before, limit, reverse)
                    page = await log.read(
                        "p", "s", after=after, before=before, limit=limit, reverse=reverse
                    )
                    assert [stored.seq for stored in page.entries] == seqs[:limit], asked
                    assert page.more == (len(wanted) > limit), asked


async def test_a_page_is_bounded_in_bytes(log: LogStorage) -> None:
    entries: list[Entry] = [{"n": n, "x": "x" * 1_000_000} for n in range(1, 25)]
    await log.create("p", {"s": entries})
    seen: list[int] = []
    more, pages = True, 0
    while more:
        page = await log.read("p", "s", after=len(seen))
        assert page.entries
        seen += [stored.seq for stored in page.entries]
        more, pages = page.more, pages + 1
    assert seen == list(range(1, 25))
    assert pages > 1


async def test_reading_what_is_not_there(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    assert (await log.read("p", "s")).entries == ()
    assert (await log.read("p", "s", reverse=True)).more is False
    for path, stream in (("p", "t"), ("q", "s")):
        with pytest.raises(NotFound):
            await log.read(path, stream)
        with pytest.raises(NotFound):
            await log.last(path, stream)
    with pytest.raises(NotFound):
        await log.streams("q")
    with pytest.raises(ValueError, match="limit"):
        await log.read("p", "s", limit=0)


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "a/b", "a b", "ä", "a\n", "x" * 201, "a\0"])
async def test_names_that_are_refused(log: LogStorage, name: str) -> None:
    await log.create("p", {"s": []})
    with pytest.raises(ValueError, match="name"):
        await log.append("p", name, numbered(1, 1), expected=0)
    with pytest.raises(ValueError, match="name"):
        await log.create("q", {name: []})
    for path in (name, f"p/{name}", f"{name}/p", "/p", "p/", "p//q"):
        if path == "a/b":
            continue
        with pytest.raises(ValueError, match=r"name|path"):
            await log.create(path.replace("a/b", "a//b"), {"s": []})
    assert (await log.paths()).paths == ("p",)


async def test_paths_are_sorted_and_paged(log: LogStorage) -> None:
    made = ["b", "a", "a-b", "a/c", "a/c/d", "a0", "B", "a.b", "z/y/x"]
    for path in made:
        await log.create(path, {"s": []})
    found: list[str] = []
    cursor = None
    while True:
        page = await log.paths(cursor=cursor, limit=2)
        assert len(page.paths) <= 2
        found += page.paths
        cursor = page.cursor
        if cursor is None:
            break
    assert found == sorted(made)
    with pytest.raises(ValueError, match="limit"):
        await log.paths(limit=0)


async def test_delete_stream(log: LogStorage) -> None:
    await log.create("p", {"s": numbered(1, 3), "t": numbered(1, 1)})
    await log.append("p", "s", numbered(4, 4), expected=3)
    await log.delete_stream("p", "s")
    await log.delete_stream("p", "s")
    await log.delete_stream("q", "s")
    assert await log.streams("p") == ("t",)
    assert await log.append("p", "s", numbered(1, 1), expected=0) == 1
    assert await numbers(log) == [1]


async def test_a_path_ends_with_its_last_stream(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    await log.delete_stream("p", "s")
    assert (await log.paths()).paths == ()
    with pytest.raises(NotFound):
        await log.append("p", "s", numbered(1, 1), expected=0)
    await log.create("p", {"s": []})


async def test_delete_path_takes_what_is_below(log: LogStorage) -> None:
    for path in ("a", "a/b", "a-b"):
        await log.create(path, {"s": numbered(1, 2)})
        await log.append(path, "s", numbered(3, 3), expected=2)
    await log.delete_path("a")
    await log.delete_path("a")
    assert (await log.paths()).paths == ("a-b",)
    with pytest.raises(NotFound):
        await log.append("a", "s", numbered(4, 4), expected=3)
    await log.create("a", {"s": []})
    assert await log.last("a", "s") == 0


async def test_release_loses_nothing(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    await log.append("p", "s", numbered(1, 2), expected=0)
    await log.release("p")
    await log.release("never-there")
    assert await log.append("p", "s", numbered(3, 3), expected=2) == 3
    assert await numbers(log) == [1, 2, 3]


async def test_recover_tells_the_last_sequence(log: LogStorage) -> None:
    await log.create("p", {"s": numbered(1, 2)})
    assert await log.recover("p", "s") == (2, ())
    assert await log.recover("p", "new") == (0, ())
    assert await log.append("p", "s", numbered(3, 3), expected=2) == 3
    assert await log.recover("p", "s") == (3, ())
    with pytest.raises(NotFound):
        await log.recover("q", "s")


async def test_making_durable_changes_nothing(log: LogStorage) -> None:
    await log.create("p", {"s": numbered(1, 2), "t": []})
    await log.make_durable("p")
    assert await numbers(log) == [1, 2]
    assert await log.append("p", "s", numbered(3, 3), expected=2) == 3
    await log.make_durable("p")
    assert await numbers(log) == [1, 2, 3]
    await log.make_durable("missing")
    assert (await log.paths()).paths == ("p",)
    with pytest.raises(ValueError, match="cannot be a name"):
        await log.make_durable("../p")


async def test_appends_that_wait_keep_their_order(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    async with trio.open_nursery() as nursery:
        for n in range(50):
            nursery.start_soon(one_append, log, n)
            await wait_all_tasks_blocked()
    assert await numbers(log) == list(range(1, 51))


async def one_append(log: LogStorage, expected: int) -> None:
    entry = {"n": expected + 1}
    assert await log.append("p", "s", [entry], expected=expected) == expected + 1


async def test_of_two_that_expect_the_same_one_wins(log: LogStorage) -> None:
    await log.create("p", {"s": []})
    outcomes: list[int | Conflict] = []

    async def writer(name: str) -> None:
        try:
            outcomes.append(await log.append("p", "s", [{"n": 1}, {"n": 2}], expected=0))
        except Conflict as conflict:
            outcomes.append(conflict)

    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(writer, name)
    assert sorted(map(str, outcomes)) == ["2"] + ["p/s: expected last sequence 0, it is 2"] * 2
    assert await numbers(log) == [1, 2]


async def test_a_cancelled_append_is_whole_or_absent(log: LogStorage) -> None:
    """A retry with the same ``expected`` tells which."""
    await log.create("p", {"s": []})
    expected = 0
    for step in range(20):
        batch = numbered(expected + 1, expected + 3)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(log_append, log, batch, expected)
                for _ in range(step % 4):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        try:
            expected = await log.append("p", "s", batch, expected=expected)
        except Conflict as conflict:
            expected = conflict.last
        assert expected == (step + 1) * 3
    assert await numbers(log) == list(range(1, 61))


async def log_append(log: LogStorage, batch: Sequence[Entry], expected: int) -> None:
    await log.append("p", "s", batch, expected=expected)


async def test_many_streams_at_once(log: LogStorage) -> None:
    await log.create("p", {"s": []})

    async def writer(stream: str) -> None:
        for n in range(10):
            await log.append("p", stream, [{"n": n + 1}], expected=n)

    async with trio.open_nursery() as nursery:
        for index in range(20):
            nursery.start_soon(writer, f"s{index}")
    for index in range(20):
        assert await numbers(log, f"s{index}") == list(range(1, 11))


async def test_what_was_acknowledged_is_there_after_reopening(
    implementation: Implementation[LogStorage], tmp_path: Path
) -> None:
    if not implementation.lasting:
        async with implementation.open(tmp_path) as log:
            await log.create("p", {"s": []})
        async with implementation.open(tmp_path) as log:
            assert (await log.paths()).paths == ()
        return
    for step in range(3):
        async with implementation.open(tmp_path) as log:
            if step == 0:
                await log.create("p", {"s": numbered(1, 1)})
            assert await numbers(log) == list(range(1, step + 2))
            await log.append("p", "s", numbered(step + 2, step + 2), expected=step + 1)


async def test_the_error_of_the_body_leaves_as_it_is(
    implementation: Implementation[LogStorage], tmp_path: Path
) -> None:
    opened: AbstractAsyncContextManager[LogStorage] = implementation.open(tmp_path)
    with pytest.raises(StorageError, match="nowhere"):
        async with opened as log:
            await log.streams("nowhere")
