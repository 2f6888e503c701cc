"""Folding from the first entry and folding from any checkpoint give the same state."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vaala.dao.stories import Story
from vaala.dao.entries import FORMAT_MAJOR, Entry, format_entry, merged, origin_entry, turn_entry
from vaala.dao.state import CLIENT_IDS_MAX, SessionState
from vaala_protocol.base import Malformed, decode, encode, to_json
from vaala_protocol.content import TextContent
from vaala_protocol.items import AssistantMessage, encode_item
from vaala_protocol.settings import Settings, Usage
from vaala_protocol.state import InputInfo, TurnInfo, UserInput

SESSION = "s"


def stored(entry: Entry) -> Entry:
    """Return the entry as it comes back from a log."""
    found: Entry = decode(encode(entry))
    return found


def folded(entries: list[Entry]) -> SessionState:
    state = SessionState(SESSION)
    for entry in entries:
        state.apply(entry)
    return state


@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_a_checkpoint_stands_for_all_before_it(seed: int) -> None:
    story = Story(seed, SESSION)
    entries = [format_entry(), origin_entry("here")]
    for entry in entries:
        story.state.apply(entry)
    for batch in story.batches(6, checkpoints=0.8):
        entries += [stored(entry) for entry in batch]
    whole = folded(entries)
    assert whole == story.state
    for index, entry in enumerate(entries):
        if entry["t"] == "checkpoint":
            assert folded(entries[index:]) == whole


@given(st.integers(0, 10**9))
def test_a_checkpoint_can_be_written_at_every_border(seed: int) -> None:
    state = SessionState(SESSION)
    for batch in Story(seed, SESSION).batches(4):
        for entry in batch:
            state.apply(entry)
        if not state.open:
            again = folded([stored(state.checkpoint())])
            again.format = state.format
            assert again == state


def test_a_checkpoint_keeps_the_format_and_the_origin() -> None:
    state = folded([format_entry(), origin_entry("here")])
    again = folded([state.checkpoint()])
    assert again.format == (FORMAT_MAJOR, 0)
    assert again.head.origin == "here"


def test_the_order_of_client_ids_survives_a_checkpoint() -> None:
    def sent(number: int) -> Entry:
        waiting = InputInfo(
            id=f"i{number}", client_id=f"c{number}", created_at=1, source=UserInput(content=())
        )
        return {"t": "input", **to_json(waiting)}

    before = [sent(number) for number in range(CLIENT_IDS_MAX)]
    state = folded([format_entry(), *before])
    again = folded([stored(state.checkpoint())])
    for one in (state, again):
        one.apply(sent(CLIENT_IDS_MAX))
        assert "c0" not in one.client_ids
        assert len(one.client_ids) == CLIENT_IDS_MAX
    assert state == again


def test_another_origin_takes_away_what_was_allowed_and_waits() -> None:
    batches = Story(3, SESSION).batches(12, checkpoints=0)
    state = folded([origin_entry("there"), *(entry for batch in batches for entry in batch)])
    waiting = InputInfo(id="i", client_id="c", created_at=1, source=UserInput(content=()))
    state.apply({"t": "input", **to_json(waiting)})
    assert state.head.grants
    assert state.queue
    state.apply(origin_entry("there"))
    assert state.head.grants
    assert state.queue
    state.apply(origin_entry("here"))
    assert state.head.grants == ()
    assert state.queue == {}
    assert state.head.reads == {}


def test_an_origin_that_was_never_told_is_another_one() -> None:
    """An archive that leaves its origin out gains nothing by it."""
    batches = Story(3, SESSION).batches(12, checkpoints=0)
    state = folded([entry for batch in batches for entry in batch])
    assert state.head.grants
    state.apply(origin_entry("here"))
    assert state.head.grants == ()


def test_a_turn_that_is_ended_twice_is_counted_once() -> None:
    turn = TurnInfo(id="t", state="running", started_at=1, settings=Settings(), instance="i")
    done = TurnInfo(
        id="t", state="completed", started_at=1, settings=Settings(), instance="i",
        usage={"m": Usage(input=7)},
    )  # fmt: skip
    state = folded([turn_entry(turn), turn_entry(done, turn), turn_entry(done, turn)])
    assert state.head.usage == {"m": Usage(input=7)}


@pytest.mark.parametrize(
    "entry",
    [
        {"t": "checkpoint"},
        {"t": "checkpoint", "major": 1, "minor": 0, "head": [1]},
        {"t": "format", "major": "1", "minor": 0},
        {"t": "origin"},
        {"t": "item", "id": "i", "text": "a change of nothing"},
        {"t": "item", "at": 1},
        {"t": "turn", "id": "t", "state": "completed"},
        {"t": "step", "turnId": "t", "number": 1, "endedAt": 5},
        {"t": "input", "id": 5},
    ],
)
def test_nonsense_is_malformed_and_changes_nothing_else(entry: Entry) -> None:
    state = SessionState(SESSION)
    with pytest.raises(Malformed):
        state.apply(entry)


def test_entries_of_an_unknown_kind_are_passed_over() -> None:
    state = SessionState(SESSION)
    assert state.apply({"t": "hologram", "id": "x"}) is None
    assert state == SessionState(SESSION)


def test_null_takes_a_field_back_to_its_default() -> None:
    item = AssistantMessage(id="i", at=1, created_at=1, text="x")
    fields = merged(encode_item(item), {"text": None, "completedAt": 4})
    assert "text" not in fields
    assert fields["completedAt"] == 4
    assert TextContent(text="").text == ""
