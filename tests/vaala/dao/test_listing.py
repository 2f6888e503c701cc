"""Lists and searches: order, filters, cursors in both directions."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vaala.dao.conversing import begin, listed, say
from vaala.dao.store import ListQuery, Store, open_memory_store
from vaala_protocol.errors import BadRequest, Busy, NotFound
from vaala_protocol.state import Location


async def fill(store: Store, count: int = 10) -> list[str]:
    """Make conversations whose last change is in the reverse order of their creation."""
    ids = []
    for number in range(count):
        log, session = await begin(
            store,
            tags=("even",) if number % 2 == 0 else ("odd", "third"),
            directory=f"/home/{number % 3}",
        )
        await say(session, f"question number {number}", f"reply {number}", now=9000 - number)
        if number == 4:
            await log.update(archived=True)
        await log.close()
        ids.append(log.id)
    return ids


async def test_order_and_direction(memory_store: Store) -> None:
    ids = await fill(memory_store)

    async def by(**how: Any) -> list[str]:
        return await listed(memory_store, ListQuery(archived=None, **how))

    assert await by(order="created") == ids[::-1]
    assert await by(order="created", newest_first=False) == ids
    assert await by() == ids
    assert await by(newest_first=False) == ids[::-1]


async def test_filters(memory_store: Store) -> None:
    ids = await fill(memory_store)
    assert ids[4] not in await listed(memory_store, ListQuery())
    assert await listed(memory_store, ListQuery(archived=True)) == [ids[4]]
    assert await listed(memory_store, ListQuery(tag="third")) == ids[1::2]
    assert await listed(memory_store, ListQuery(directory="/home/0")) == ids[0::3]
    both = ListQuery(directory="/home/0", tag="even", archived=None)
    assert await listed(memory_store, both) == ids[0::6]
    assert await listed(memory_store, ListQuery(status="running")) == []


async def test_a_row_tells_what_a_list_shows(memory_store: Store) -> None:
    log, session = await begin(memory_store, tags=("x",))
    await say(session, "how many?", "three\n\nof them", now=5000)
    (row,) = (await memory_store.list()).rows
    assert (row.sessions, row.turns, row.items, row.snippet) == (1, 1, 2, "three of them")
    assert row.info == log.record
    assert await memory_store.get(log.id) == row
    assert await memory_store.get("nothing") is None


async def test_the_status_of_a_running_turn_is_listed(memory_store: Store) -> None:
    _, session = await begin(memory_store)
    await session.append(
        [{"t": "turn", "id": "t", "state": "running", "startedAt": 5, "settings": {}}]
    )
    assert len(await listed(memory_store, ListQuery(status="running"))) == 1
    question = {"t": "item", "kind": "question", "id": "q", "at": 1, "createdAt": 1, "step": 1}
    await session.append([question])
    assert len(await listed(memory_store, ListQuery(status="waitingAnswer"))) == 1
    await session.append([{"t": "turn", "id": "t", "state": "completed"}])
    assert len(await listed(memory_store, ListQuery(status="idle"))) == 1


async def test_changes_of_the_record_are_no_activity(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    await say(session, "hello", now=5000)
    await log.update(title="renamed", locations=(Location(executor="e", directory="/d"),))
    (row,) = (await memory_store.list()).rows
    assert (row.info.updated_at, row.info.title) == (5000, "renamed")
    assert row.info.locations[0].directory == "/d"


@settings(max_examples=20)
@given(st.lists(st.integers(1000, 1010), min_size=1, max_size=12), st.booleans())
def test_pages_go_on_where_they_ended_when_times_are_equal(times: list[int], newest: bool) -> None:
    async def main() -> None:
        async with open_memory_store() as store:
            expected = []
            for now in times:
                log, session = await begin(store)
                await say(session, "x", now=now)
                expected.append((now, log.id))
            found = await listed(store, ListQuery(newest_first=newest))
            assert found == [name for _, name in sorted(expected, reverse=newest)]

    trio.run(main)


async def test_search_finds_messages_and_titles(memory_store: Store) -> None:
    """G5-3: however old the conversation is."""
    ids = await fill(memory_store, 230)
    page = await memory_store.search("reply 7")
    assert page.results[0].conversation.id == ids[7]
    assert page.results[0].item_id is not None
    assert "reply 7" in page.results[0].snippet
    titles = [r for r in (await memory_store.search("number 9")).results if r.item_id is None]
    assert titles[0].conversation.id == ids[9]


async def test_search_reads_words_of_every_script(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    await say(session, "请修复登录错误", "Čeština a café; don't a:b *", now=5)
    for text in ("登录", "录", "cestina", "CAFÉ", "don't", "a:b", "*", "caf"):
        results = (await memory_store.search(text)).results
        assert [r.conversation.id for r in results if r.item_id] == (
            [log.id] if text != "*" else []
        )
    assert (await memory_store.search("  ")).results == ()


async def test_search_goes_on_page_by_page(memory_store: Store) -> None:
    ids = await fill(memory_store, 12)
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await memory_store.search("reply", cursor, 5)
        found += [result.conversation.id for result in page.results]
        if (cursor := page.cursor) is None:
            break
    assert sorted(found) == sorted(ids)


@pytest.mark.parametrize("cursor", ["nonsense", "e30", "W10"])
async def test_a_foreign_cursor_is_a_bad_request(memory_store: Store, cursor: str) -> None:
    await fill(memory_store, 2)
    with pytest.raises(BadRequest, match="cursor"):
        await memory_store.list(cursor=cursor)
    with pytest.raises(BadRequest, match="cursor"):
        await memory_store.search("reply", cursor=cursor)


async def test_an_open_conversation_is_not_deleted(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    await say(session, "hello")
    with pytest.raises(Busy, match="close it first"):
        await memory_store.delete(log.id)
    await log.close()
    await memory_store.delete(log.id)
    assert await listed(memory_store) == []
    assert (await memory_store.search("hello")).results == ()
    for missing in (log.id, "never", "../x", "x" * 500, ""):
        with pytest.raises(NotFound, match="no conversation"):
            await memory_store.delete(missing)
        with pytest.raises(NotFound, match="no conversation"):
            await memory_store.open(missing)


async def test_reindex_reports_its_progress(memory_store: Store) -> None:
    await fill(memory_store, 5)
    told: list[tuple[int, int | None]] = []
    report = await memory_store.reindex(lambda done, total: told.append((done, total)))
    assert (report.conversations, report.removed, report.unreadable) == (5, 0, ())
    assert told[-1][0] == 5
