"""Session states, made by changes the way a session makes them."""

from __future__ import annotations

from collections.abc import Sequence

from vaala.changes import Change, input_change, item_change, replace, step_change, turn_change
from vaala.dao.state import SessionState
from vaala_protocol.content import TextContent
from vaala_protocol.items import Item
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    CommandEnded,
    Delivery,
    InputInfo,
    InputState,
    PeerInput,
    StepInfo,
    TurnInfo,
    UserInput,
)

ID = "01234567-89ab-7def-8123-456789abcdef"
TURN = TurnInfo(id="turn", state="running", started_at=1, settings=Settings(), instance="i")


def apply(state: SessionState, changes: Sequence[Change]) -> SessionState:
    """Apply changes as a session does, once they are durable."""
    for change in changes:
        change.apply(state)
    return state


def folded(*histories: Sequence[Change]) -> SessionState:
    """Return the state as it is read from the log that these changes make."""
    state = SessionState(ID)
    for changes in histories:
        for change in changes:
            state.apply(change.entry)
    return state


def waiting(
    name: str,
    place: int,
    *,
    state: InputState = "waiting",
    delivery: Delivery = "queue",
    words: str = "",
) -> InputInfo:
    """Return a person's message."""
    source = UserInput(content=(TextContent(text=words or name),))
    return InputInfo(
        id=name, client_id=f"client {name}", source=source, created_at=1, place=place,
        state=state, delivery=delivery,
    )  # fmt: skip


def ended(name: str, place: int, output: str = "") -> InputInfo:
    """Return the news that a background command has ended."""
    source = CommandEnded(command_id=name, tool_call_id="t", command="make", output=output)
    return InputInfo(id=name, client_id=f"command:{name}", source=source, created_at=1, place=place)


def result(name: str, place: int) -> InputInfo:
    """Return the result of a child session."""
    source = PeerInput(from_session="child", content=(TextContent(text="done"),), cause="t",
                       turn_state="completed")  # fmt: skip
    return InputInfo(id=name, client_id=f"child:{name}", source=source, created_at=1, place=place)


def queued(*pending: InputInfo) -> SessionState:
    return apply(SessionState(ID), [input_change(ID, one) for one in pending])


def turn_changes(*items: Item, step: int = 1) -> list[Change]:
    """Return the changes of a running turn whose open step has these items."""
    changes = [turn_change(ID, TURN)]
    if items:
        info = StepInfo(turn_id=TURN.id, number=step, model="m", started_at=1)
        changes.append(step_change(ID, info))
    mine = [replace(item, session_id=ID, turn_id=TURN.id, step=step) for item in items]
    return changes + [item_change(item) for item in mine]
