"""The queue of input: what is taken when, and what its owner can still do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from random import Random

import pytest

from tests.vaala.core.states import ID, apply, ended, folded, queued, result, waiting
from vaala import inputs, limits
from vaala.changes import Change, input_change, replace
from vaala.dao.state import SessionState
from vaala.requests import Send
from vaala_protocol.base import encode
from vaala_protocol.content import FileContent, ImageContent, TextContent
from vaala_protocol.errors import BadRequest, NotFound, NotPending, Overloaded
from vaala_protocol.events import InputChanged, ItemChanged
from vaala_protocol.items import CommandEnd, PeerMessage, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import InputInfo, UserInput


def names(taken: list[InputInfo]) -> list[str]:
    return [one.id for one in taken]


def send(words: str, client_id: str = "c") -> Send:
    return Send(client_id, UserInput(content=(TextContent(text=words),)))


def test_a_turn_begins_with_one_message_and_the_news_before_it() -> None:
    state = queued(ended("e", 1), waiting("a", 2), result("r", 3), waiting("b", 4))
    assert names(inputs.for_turn(state.pending)) == ["e", "a"]


def test_news_alone_starts_no_turn() -> None:
    assert inputs.for_turn(queued(ended("e", 1), result("r", 2)).pending) == []


def test_what_is_held_is_passed_over() -> None:
    state = queued(waiting("held", 1, state="held"), waiting("a", 2))
    assert names(inputs.for_turn(state.pending)) == ["a"]
    assert inputs.for_step(queued(waiting("s", 1, state="held", delivery="steer")).pending) == []


def test_a_step_takes_steers_and_news_but_no_queued_message() -> None:
    state = queued(
        waiting("queued", 1), waiting("steer", 2, delivery="steer"), ended("e", 3), result("r", 4)
    )
    assert names(inputs.for_step(state.pending)) == ["steer", "e", "r"]


@pytest.mark.parametrize(
    ("one", "goes_on"),
    [
        (waiting("s", 1, delivery="steer"), True),
        (waiting("s", 1, delivery="steer", state="held"), False),
        (waiting("q", 1), False),
        (ended("e", 1), False),
    ],
)
def test_only_a_person_s_steer_keeps_a_turn_going(one: InputInfo, goes_on: bool) -> None:
    assert inputs.steers(queued(one).pending) is goes_on


def test_what_is_taken_fits_in_one_append() -> None:
    """A line of the log holds 1 MiB; what does not fit comes with the next step, in order."""
    big = "x" * (limits.INPUT_BYTES_MAX - 1_000)
    first = waiting("a", 9, words=big)
    state = queued(*(ended(f"e{place}", place, "y" * 100_000) for place in range(1, 6)), first)
    taken = inputs.for_turn(state.pending)
    assert names(taken) == ["a"]
    new = inputs.consumed(queued(), taken, count(1).__next__, turn_id="t", step=1)[0]
    assert sum(len(encode(change.entry)) for change in new) < (1 << 20) - 64 * 1024
    apply(state, inputs.consumed(state, taken, count(1).__next__, turn_id="t", step=1)[0])
    seen: list[str] = []
    while step := inputs.for_step(state.pending):
        changes = inputs.consumed(state, step, count(1).__next__, turn_id="t", step=2)[0]
        assert sum(len(encode(change.entry)) for change in changes) < 1 << 20
        seen += names(step)
        apply(state, changes)
    assert seen == ["e1", "e2", "e3", "e4", "e5"]


def test_one_steer_that_fills_a_step_is_taken_alone() -> None:
    big = "x" * (limits.INPUT_BYTES_MAX - 1_000)
    steers = [waiting(name, place, delivery="steer", words=big) for place, name in enumerate("ab")]
    state = queued(*steers)
    assert names(inputs.for_step(state.pending)) == ["a"]
    assert inputs.steers(state.pending)


def test_consuming_makes_history_of_an_input_in_one_go() -> None:
    state = queued(ended("e", 1), result("r", 2), waiting("a", 3))
    taken = inputs.for_turn(state.pending)
    changes, items = inputs.consumed(state, taken, count(7).__next__, turn_id="t", step=1)
    kinds = [type(item) for item in items]
    assert kinds == [CommandEnd, PeerMessage, UserMessage]
    assert [item.at for item in items] == [7, 8, 9]
    assert [item.input_id for item in items if isinstance(item, UserMessage)] == ["a"]
    assert [type(change.event) for change in changes] == [InputChanged, ItemChanged] * 3
    apply(state, changes)
    assert state.pending == []
    assert state.client_ids["client a"] == "a"


def test_held_and_released_in_order() -> None:
    state = queued(waiting("a", 1), waiting("b", 2), ended("e", 3))
    apply(state, inputs.held(state, {"a", "b", "gone"}))
    assert [one.state for one in state.pending] == ["held", "held", "waiting"]
    assert inputs.held(state, {"a"}) == [], "what is held is not held again"
    apply(state, inputs.released(state))
    assert names(state.pending) == ["a", "b", "e"]
    assert {one.state for one in state.pending} == {"waiting"}
    assert inputs.released(state) == []


@pytest.mark.parametrize(
    ("moved", "before", "order"),
    [
        ("c", "a", "cabd"), ("a", None, "bcda"), ("a", "c", "bacd"), ("b", "b", "abcd"),
        ("d", None, "abcd"), ("a", "b", "abcd"),
    ],
)  # fmt: skip
def test_moving(moved: str, before: str | None, order: str) -> None:
    state = queued(*(waiting(name, place) for place, name in enumerate("abcd", 3)))
    apply(state, inputs.moved(state, moved, before))
    assert names(state.pending) == list(order)
    assert sorted(one.place for one in state.pending) == [3, 4, 5, 6]


@pytest.mark.parametrize(("moved", "before"), [("x", None), ("a", "x"), ("x", "x")])
def test_moving_what_is_not_there(moved: str, before: str | None) -> None:
    with pytest.raises(NotFound, match="no input x"):
        inputs.moved(queued(waiting("a", 1)), moved, before)


def test_what_was_taken_can_be_changed_no_more() -> None:
    state = queued(waiting("a", 1))
    taken = inputs.for_turn(state.pending)
    apply(state, inputs.consumed(state, taken, count(1).__next__, turn_id="t", step=1)[0])
    for change in (
        lambda: inputs.find_waiting(state, "a"),
        lambda: inputs.edited(state, "a", (TextContent(text="new"),)),
        lambda: inputs.moved(state, "a", None),
    ):
        with pytest.raises(NotPending, match="taken or withdrawn before"):
            change()


def test_editing_changes_a_person_s_words_only() -> None:
    state = queued(waiting("a", 1), ended("e", 2))
    old, new = inputs.edited(state, "a", (TextContent(text="better"),))
    assert (old.source, new.source) == (
        state.queue["a"].source, UserInput(content=(TextContent(text="better"),)),
    )  # fmt: skip
    with pytest.raises(BadRequest, match="not written by a person"):
        inputs.edited(state, "e", (TextContent(text="better"),))
    with pytest.raises(BadRequest, match="empty"):
        inputs.edited(state, "a", (TextContent(text=" \u200b"),))


def test_a_new_input_goes_to_the_end_with_what_was_asked_for() -> None:
    state = queued(waiting("a", 5))
    settings = Settings(model="m")
    new = inputs.accepted(state, Send("c", send("hi").source, "steer", settings))
    assert (new.place, new.delivery, new.settings, new.state) == (6, "steer", settings, "waiting")


def test_the_same_client_id_finds_its_input() -> None:
    state = queued(waiting("a", 1))
    assert inputs.known(state, send("again", "client a")) == state.queue["a"]
    assert inputs.known(state, send("new", "other")) is None
    taken = inputs.for_turn(state.pending)
    apply(state, inputs.consumed(state, taken, count(1).__next__, turn_id="t", step=1)[0])
    found = inputs.known(state, send("again", "client a"))
    assert found is not None
    assert (found.id, found.state) == ("a", "consumed")


def test_a_full_queue_refuses() -> None:
    many = [waiting(str(place), place) for place in range(limits.QUEUE_INPUTS_MAX)]
    with pytest.raises(Overloaded, match="256 messages wait"):
        inputs.accepted(queued(*many), send("one more"))


def test_content_is_made_storable_and_bounded() -> None:
    [block] = inputs.checked_content((TextContent(text="a\ud800\0"),))
    assert block == TextContent(text="a\ufffd\ufffd")
    with pytest.raises(BadRequest, match="empty"):
        inputs.checked_content(())
    with pytest.raises(BadRequest, match="put it in a file"):
        inputs.checked_content((TextContent(text='"' * (limits.INPUT_BYTES_MAX // 2)),))


def test_a_picture_alone_is_content() -> None:  # A4-3
    picture = ImageContent(blob="b", media_type="image/png", size_bytes=1)
    assert inputs.checked_content((picture,)) == (picture,)


def test_a_file_name_that_is_no_unicode_is_refused() -> None:
    file = FileContent(name="\udcff.txt", blob="b", media_type="text/plain", size_bytes=1)
    with pytest.raises(BadRequest, match="cannot be stored"):
        inputs.checked_content((file,))


def test_any_use_of_the_queue_takes_each_input_once_and_folds_alike() -> None:
    """Storms of sends, edits, moves, withdrawals, holds, turns and steps."""
    for seed in range(200):
        random = Random(seed)
        state = queued()
        log: list[Change] = []
        taken: list[str] = []
        gone: set[str] = set()
        number = count(1)
        next_at = count(1).__next__
        for _ in range(60):
            changes = _some_change(random, state, number, next_at, taken, gone)
            apply(state, changes)
            log += changes
        assert len(taken) == len(set(taken)), f"seed {seed}"
        assert not gone & set(taken), f"seed {seed}"
        accepted = set(state.client_ids.values())
        assert accepted == {*taken, *gone, *state.queue}, f"seed {seed}"
        assert folded(log) == state, f"seed {seed}"


def _some_change(
    random: Random,
    state: SessionState,
    number: Iterator[int],
    next_at: Callable[[], int],
    taken: list[str],
    gone: set[str],
) -> list[Change]:
    waits = list(state.queue.values())
    match random.randrange(8):
        case 0 | 1 | 2:
            asked = Send(f"c{next(number)}", send("x").source, random.choice(("queue", "steer")))
            return [input_change(ID, inputs.accepted(state, asked))]
        case 3:
            chosen = inputs.for_turn(state.pending)
        case 4:
            chosen = inputs.for_step(state.pending)
        case 5:
            return inputs.held(state, random.sample(list(state.queue), len(waits) // 2))
        case 6:
            return inputs.released(state)
        case _ if not waits:
            return []
        case _:
            one = random.choice(waits)
            other = random.choice((None, random.choice(waits).id))
            if random.random() < 0.5:
                return inputs.moved(state, one.id, other)
            if random.random() < 0.5:
                words = (TextContent(text="edited"),)
                return [input_change(ID, inputs.edited(state, one.id, words)[1], one)]
            gone.add(one.id)
            return [input_change(ID, replace(one, state="withdrawn"), one)]
    taken += names(chosen)
    return inputs.consumed(state, chosen, next_at, turn_id="t", step=1)[0]
