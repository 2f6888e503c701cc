"""Transcripts by place: the same items from either end, at a cost that length does not change."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vaala.dao.conversing import all_items, backward, begin, forward, tell, write
from tests.vaala.dao.stories import Story
from vaala.dao.item_pages import page_before
from vaala.dao.limits import PROBE_ENTRIES, READ_CHUNK_ENTRIES
from vaala.dao.store import Store, open_memory_store
from vaala.dao.walk import Stream
from vaala_protocol.state import TurnInfo
from vaala_storage.log import LogStorage, Page
from vaala_storage.staged import StagedStorage


@settings(max_examples=30)
@given(st.integers(0, 10**9), st.integers(1, 9))
def test_paging_from_either_end_gives_the_same_items(seed: int, limit: int) -> None:
    async def main() -> None:
        async with open_memory_store() as store:
            log, session = await begin(store)
            story = Story(seed, log.id)
            await tell(session, story, 7)
            expected = story.in_order
            assert await forward(session, limit) == expected
            assert await backward(session, limit) == expected
            assert await all_items(session) == expected

    trio.run(main)


async def test_every_place_is_a_good_cursor(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    story = Story(5, log.id)
    await tell(session, story, 40)
    expected = story.in_order
    assert len(expected) > 200
    for place in range(0, expected[-1].at + 2, 7):
        before = [item for item in expected if item.at < place]
        after = [item for item in expected if item.at > place]
        page = await session.items(before=place, limit=4)
        assert (list(page.items), page.earlier) == (before[-4:], len(before) > 4)
        assert page.later == (len(before) < len(expected))
        page = await session.items(after=place, limit=4)
        assert (list(page.items), page.later) == (after[:4], len(after) > 4)
        assert page.earlier == (len(after) < len(expected))
        page = await session.items(after=place, before=place + 5)
        assert list(page.items) == [item for item in after if item.at < place + 5]
        assert [i async for items in session.history(place) for i in items] == [
            item for item in expected if item.at >= place
        ]


async def test_an_empty_session_has_an_empty_page(memory_store: Store) -> None:
    _, session = await begin(memory_store)
    page = await session.items()
    assert (page.items, page.earlier, page.later) == ((), False, False)
    page = await session.items(after=3)
    assert (page.items, page.earlier, page.later) == ((), False, False)


class Counting(LogStorage):
    """Counts the entries that are read from another log."""

    def __init__(self, inner: LogStorage) -> None:
        self._inner = inner
        self.entries = 0

    async def read(self, path: str, stream: str, **how: Any) -> Page:
        page = await self._inner.read(path, stream, **how)
        self.entries += len(page.entries)
        return page

    async def last(self, path: str, stream: str) -> int:
        return await self._inner.last(path, stream)

    async def append(self, *args: Any, **how: Any) -> Any:
        raise NotImplementedError

    create = recover = make_durable = streams = paths = append
    delete_stream = delete_path = release = append


@pytest.mark.parametrize("turns", [20, 250])
async def test_a_page_costs_no_more_in_a_long_session(turns: int) -> None:
    """G5-2: reading is bounded by the page and a bisection."""
    story = Story(1, "c")
    staged = StagedStorage()
    entries = [entry for batch in story.batches(turns, checkpoints=0.02) for entry in batch]
    await staged.log.create("c", {"main": entries})
    counting = Counting(staged.log)
    stream = Stream(counting, "c", "main")
    expected = [item for item in story.in_order if item.at < story.in_order[-1].at // 2]
    page = await page_before(stream, "c", expected[-1].at + 1, 10)
    assert list(page.items) == expected[-10:]
    # A few pieces around the place, and a probe for each halving.
    assert counting.entries <= 3 * READ_CHUNK_ENTRIES + PROBE_ENTRIES * len(entries).bit_length()


async def test_turns_and_steps_come_newest_first(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    story = Story(11, log.id)
    await tell(session, story, 9)
    everything = await session.turns(limit=100)
    assert len(everything.turns) == 9
    assert everything.cursor is None
    assert {turn.state for turn in everything.turns} <= {"completed", "interrupted"}
    started = [turn.started_at for turn in everything.turns]
    assert started == sorted(started, reverse=True)
    paged: list[TurnInfo] = []
    cursor = None
    while True:
        page = await session.turns(cursor=cursor, limit=2)
        paged += page.turns
        if (cursor := page.cursor) is None:
            break
    assert tuple(paged) == everything.turns
    newest = everything.turns[0]
    steps = await session.steps(turn_id=newest.id)
    assert {step.turn_id for step in steps.steps} == {newest.id}
    numbers = [step.number for step in steps.steps]
    assert numbers == list(range(len(numbers), 0, -1))
    assert all(step.ended_at is not None for step in steps.steps)


async def test_a_changed_item_is_shown_whole(memory_store: Store) -> None:
    _, session = await begin(memory_store)
    await write(
        session,
        [
            {
                "t": "item",
                "kind": "assistant_message",
                "id": "a",
                "at": 1,
                "createdAt": 1,
                "step": 1,
            },
            {"t": "item", "id": "a", "text": "so far", "rev": 2},
            {"t": "item", "id": "a", "text": "so far and on", "completedAt": 9, "rev": 3},
        ],
    )
    (item,) = (await session.items()).items
    assert (item.rev, item.completed_at) == (3, 9)
    assert getattr(item, "text", None) == "so far and on"


async def test_an_item_of_an_unknown_kind_is_kept_and_shown(memory_store: Store) -> None:
    _, session = await begin(memory_store)
    entry = {"t": "item", "kind": "hologram", "id": "h", "at": 1, "createdAt": 1, "beam": [1, 2]}
    await write(session, [entry])
    (item,) = (await session.items()).items
    assert getattr(item, "unknown_kind", None) == "hologram"
    assert getattr(item, "fields", {})["beam"] == [1, 2]
