"""Settling a session whose runtime ended without a word: once, and idempotently.

Run at open, before the first message. What was waiting never ran, what was running is unknown,
nothing is run again. Settling a settled session changes nothing (case A1-5), and one that was
settled in part, since its changes took several appends, is settled in the rest.
"""

from __future__ import annotations

from vaala.changes import (
    Change,
    input_change,
    interruption,
    item_change,
    now_ms,
    replace,
    settled,
    step_change,
    turn_change,
)
from vaala.dao.state import SessionState
from vaala_protocol.ids import new_id
from vaala_protocol.items import Interruption
from vaala_protocol.state import CommandEnded, InputInfo, TurnInfo, UserInput

_REASON = "the runtime ended before the turn did"


def recovery_changes(state: SessionState) -> list[Change]:
    """Return the changes that settle ``state``; none when there is nothing to settle."""
    return [*_close_turn(state), *_hold_queue(state), *_lost_commands(state)]


def _close_turn(state: SessionState) -> list[Change]:
    turn, step = state.head.turn, state.head.step
    if turn is None or turn.state != "running":
        return []
    changes = [
        item_change(done, item)
        for item in state.open.values()
        if (done := settled(item, crashed=True, reason=_REASON)) is not None
    ]
    ended = replace(
        turn,
        state="interrupted",
        stop_reason="interrupted",
        interrupted_by="crash",
        message=_REASON,
        ended_at=now_ms(),
    )
    if step is not None and step.turn_id == turn.id and step.ended_at is None:
        changes.append(step_change(state.session_id, replace(step, ended_at=now_ms()), step))
    # Behind the end of the step, which closes what is open: so it is found when settling was cut.
    if not any(isinstance(item, Interruption) for item in state.open.values()):
        number = _last_step(state, turn)
        note = interruption(ended, state.head.last_at + 1, new_id(), number, _REASON)
        changes.append(item_change(note))
    changes.append(turn_change(state.session_id, ended, turn))
    return changes


def _last_step(state: SessionState, turn: TurnInfo) -> int:
    """Return the number of the step that the turn was in."""
    step = state.head.step
    ended = step.number if step is not None and step.turn_id == turn.id else 1
    return max((item.step or 0 for item in state.open.values()), default=ended)


def _hold_queue(state: SessionState) -> list[Change]:
    return [
        input_change(state.session_id, replace(waiting, state="held"), waiting)
        for waiting in state.pending
        if waiting.state == "waiting" and isinstance(waiting.source, UserInput)
    ]


def _lost_commands(state: SessionState) -> list[Change]:
    changes: list[Change] = []
    for command in state.head.commands:
        if f"command:{command.id}" in state.client_ids:
            continue
        source = CommandEnded(
            command_id=command.id,
            tool_call_id=command.tool_call_id,
            command=command.command,
            lost=True,
        )
        lost = InputInfo(
            id=new_id(),
            client_id=f"command:{command.id}",
            source=source,
            created_at=now_ms(),
            place=state.head.last_place + 1 + len(changes),
        )
        changes.append(input_change(state.session_id, lost))
    return changes
