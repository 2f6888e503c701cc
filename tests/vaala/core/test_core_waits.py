"""Waits that can be seen, waits that would never end, and live parts."""

from __future__ import annotations

import pytest

from tests.vaala.core.items import call, said
from vaala.live import LiveParts
from vaala.waits import WaitGraph, Waits
from vaala_protocol.events import Event, ItemChanged, ItemDelta, ItemDropped
from vaala_protocol.state import LivePart, Wait


def test_each_wait_is_shown_while_it_lasts() -> None:
    told: list[tuple[Wait, ...]] = []
    waits = Waits(told.append)
    with waits.on("model", "first byte", timeout_s=60), waits.on("you", "approve edit"):
        assert [wait.subject for wait in waits.snapshot()] == ["model", "you"]
    assert [len(shown) for shown in told] == [1, 2, 1, 0]
    model, you = told[1]
    assert model.deadline_at == model.since + 60_000
    assert you.deadline_at is None, "until interrupted"


def test_a_wait_that_ends_with_an_error_is_gone() -> None:
    waits = Waits(lambda _: None)
    with pytest.raises(ValueError, match="broken"), waits.on("disk", "full"):
        raise ValueError("broken")
    assert waits.snapshot() == ()


def test_a_cycle_is_refused_and_named() -> None:
    graph = WaitGraph()
    with graph.edge("a", "b"), graph.edge("b", "c"), graph.edge("x", "c"):
        for waiter, target, cycle in (
            ("c", "a", "c -> a -> b -> c"),
            ("c", "b", "c -> b -> c"),
            ("a", "a", "a -> a"),
        ):
            with pytest.raises(ValueError, match=cycle), graph.edge(waiter, target):
                pytest.fail("the edge is refused")
        with graph.edge("a", "c"):
            assert graph.waits("a", "c")
            assert not graph.waits("c", "a")
    assert not graph.waits("b", "c")
    with graph.edge("c", "a"):
        assert graph.waits("c", "a")


def test_two_waits_for_the_same_are_counted() -> None:
    graph = WaitGraph()
    with graph.edge("a", "b"):
        with graph.edge("a", "b"):
            assert graph.waits("a", "b")
        assert graph.waits("a", "b"), "one of them still waits"
        with pytest.raises(ValueError, match="b -> a -> b"), graph.edge("b", "a"):
            pytest.fail("the edge is refused")
    assert not graph.waits("a", "b")


def test_live_parts_grow_by_index_and_are_in_the_snapshot() -> None:
    events: list[Event] = []
    live = LiveParts("s", events.append)
    item = said(1, "")
    live.show(item, "text")
    live.add(item.id, "He\U0001f600")
    live.add(item.id, "")
    live.add(item.id, "llo")
    assert events == [
        ItemChanged(item=item, live=True),
        ItemDelta(session_id="s", item_id=item.id, field="text", index=0, text="He\U0001f600"),
        ItemDelta(session_id="s", item_id=item.id, field="text", index=3, text="llo"),
    ]
    assert live.snapshot() == (
        LivePart(item=item, field="text", text="He\U0001f600llo", next_index=6),
    )


def test_what_is_live_no_more_takes_no_text() -> None:
    events: list[Event] = []
    live = LiveParts("s", events.append)
    kept, dropped = call(1, "waiting"), call(2, "waiting")
    live.show(kept, "arguments")
    live.show(dropped, "arguments")
    live.end(kept.id)
    live.drop(dropped.id)
    live.drop(dropped.id)
    live.add(kept.id, "late")
    live.add(dropped.id, "late")
    assert events[2:] == [ItemDropped(session_id="s", item_id=dropped.id)]
    assert live.snapshot() == ()
    assert live.text(kept.id) == ""
