"""Settling what a crash left: once, whatever was on disk, and never by running it again."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.vaala.core.items import call, said, user
from tests.vaala.core.states import ID, TURN, apply, ended, folded, turn_changes, waiting
from vaala.changes import Change, input_change, replace, step_change, turn_change
from vaala.dao.state import SessionState
from vaala.recovery import recovery_changes
from vaala_protocol.calls import CommandDetails
from vaala_protocol.events import InputChanged, ItemChanged
from vaala_protocol.items import Approval, Interruption, Item, Question, ToolCall
from vaala_protocol.state import CommandEnded, InputInfo, StepInfo


def items_of(changes: list[Change]) -> list[Item]:
    return [change.event.item for change in changes if isinstance(change.event, ItemChanged)]


def inputs_of(changes: list[Change]) -> list[InputInfo]:
    return [change.event.input for change in changes if isinstance(change.event, InputChanged)]


def approval(at: int) -> Approval:
    return Approval(id=f"p{at}", at=at, created_at=1, tool_call_id="c", digest="d", options=())


def command(at: int, command_id: str) -> ToolCall:
    details = CommandDetails(command="make", cwd="/", command_id=command_id, background=True)
    return replace(call(at, "done"), details=details, started_at=1)


def crashed(*items: Item, step: int = 1) -> SessionState:
    return folded(turn_changes(*items, step=step))


def test_a_running_call_has_an_unknown_outcome_and_a_waiting_one_never_ran() -> None:  # A1-3
    state = crashed(
        user(1, words="x"), call(2, "running"), call(3, "waiting"), call(4, "done", "ok"),
        approval(5), Question(id="q", at=6, created_at=1, text="Which?"),
    )  # fmt: skip
    changes = recovery_changes(state)
    states = [getattr(item, "state", type(item).__name__) for item in items_of(changes)]
    assert states == ["unknown", "cancelled", "expired", "expired", "Interruption"]
    after = apply(state, changes)
    assert after.head.turn is not None
    assert (after.head.turn.state, after.head.turn.interrupted_by) == ("interrupted", "crash")
    assert after.head.step is not None
    assert after.head.step.ended_at is not None
    assert after.open == {}


def test_a_log_that_ends_with_a_call_of_empty_arguments_is_settled() -> None:  # A1-4
    [settled, note] = items_of(recovery_changes(crashed(call(1, "waiting", arguments="{}"))))
    assert isinstance(settled, ToolCall)
    assert (settled.state, settled.arguments, settled.rev) == ("cancelled", "{}", 2)
    assert isinstance(note, Interruption)
    assert note.at == 2


def test_settling_again_changes_nothing() -> None:  # A1-5
    state = crashed(user(1, words="x"), call(2, "running"), command(3, "bg"))
    changes = [*recovery_changes(state)]
    assert recovery_changes(apply(state, changes)) == []
    again = folded(turn_changes(user(1, words="x"), call(2, "running"), command(3, "bg")), changes)
    assert recovery_changes(again) == []


def test_a_second_crash_after_any_part_settles_the_rest_once() -> None:  # A1-5
    history = [
        *turn_changes(
            user(1, words="x"), said(2, "So"), call(3, "running"), call(4, "waiting"),
            approval(5), command(6, "one"), command(7, "two"), step=3,
        ),
        input_change(ID, waiting("a", 1)),
        input_change(ID, ended("one", 2)),
    ]  # fmt: skip
    whole = recovery_changes(folded(history))
    for kept in range(len(whole) + 1):
        begun = whole[:kept]
        rest = recovery_changes(folded(history, begun))
        all_items = items_of([*begun, *rest])
        ids = [item.id for item in all_items if not isinstance(item, Interruption)]
        assert len(ids) == len(set(ids)), "one result for each call"
        assert sum(isinstance(item, Interruption) for item in all_items) == 1
        lost = [
            one.source.command_id
            for one in inputs_of([*begun, *rest])
            if isinstance(one.source, CommandEnded)
        ]
        assert lost == ["two"]
        assert recovery_changes(folded(history, begun, rest)) == []


def test_a_person_s_messages_are_held_and_news_is_not() -> None:
    state = folded(
        [input_change(ID, waiting("a", 1)), input_change(ID, ended("e", 2))],
        [input_change(ID, waiting("b", 3, state="held"))],
    )
    [held] = inputs_of(recovery_changes(state))
    assert (held.id, held.state) == ("a", "held")


def test_a_command_that_was_lost_is_told_once() -> None:
    state = crashed(command(1, "bg"))
    [lost] = [one for one in inputs_of(recovery_changes(state))]
    assert isinstance(lost.source, CommandEnded)
    assert (lost.source.command_id, lost.source.lost) == ("bg", True)
    apply(state, recovery_changes(state))
    withdrawn = input_change(ID, replace(lost, state="withdrawn"))
    apply(state, [withdrawn])
    assert recovery_changes(state) == [], "also when nobody wanted to know"


def test_a_crash_between_two_steps_closes_the_turn_in_the_last_one() -> None:
    step = StepInfo(turn_id=TURN.id, number=2, model="m", started_at=1)
    history = [
        *turn_changes(said(1, "So")), step_change(ID, step),
        step_change(ID, replace(step, ended_at=2), step),
    ]  # fmt: skip
    [note] = items_of(recovery_changes(folded(history)))
    assert (note.turn_id, note.step, note.at) == (TURN.id, 2, 2)


def test_a_turn_that_ended_is_left_alone() -> None:
    done = replace(TURN, state="completed", stop_reason="end_turn", ended_at=2)
    history = [*turn_changes(said(1, "So")), turn_change(ID, done, TURN)]
    assert recovery_changes(folded(history)) == []


def test_any_half_written_turn_is_settled_once_and_folds_alike() -> None:
    for seed in range(300):
        random = Random(seed)
        history = _history(random)
        cut = history[: random.randint(0, len(history))]
        state = folded(cut)
        assert apply(SessionState(ID), cut) == state, f"seed {seed}: live and read differ"
        changes = recovery_changes(state)
        assert apply(state, changes) == folded(cut, changes), f"seed {seed}"
        assert recovery_changes(state) == [], f"seed {seed}"
        assert state.unsettled == [], f"seed {seed}"
        assert state.head.turn is None or state.head.turn.state != "running", f"seed {seed}"
        assert all(one.state == "held" or one.id.startswith(("e", "0")) for one in state.pending)


def _history(random: Random) -> list[Change]:
    states: Any = ("waiting", "running", "done", "error", "denied", "cancelled")
    items: list[Item] = [user(1, words="x")]
    for at in range(2, random.randint(2, 9)):
        items.append(
            random.choice(
                (
                    call(at, random.choice(states)),
                    said(at, "x"),
                    approval(at),
                    command(at, f"b{at}"),
                )
            )
        )
    changes = turn_changes(*items, step=random.randint(1, 3))
    for place in range(random.randint(0, 3)):
        changes.append(input_change(ID, waiting(f"w{place}", place)))
        changes.append(input_change(ID, ended(f"e{place}", place)))
    return changes
