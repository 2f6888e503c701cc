"""`Change`: one thing that happened in a session, as an entry for the log and an event.

Persist, then apply, then publish: the session appends the entries of its changes, folds them into
its state, and publishes their events.
"""

from __future__ import annotations

import time

import msgspec
from msgspec import Struct

from vaala.dao.entries import Entry, input_entry, item_entry, step_entry, turn_entry
from vaala.dao.state import SessionState
from vaala_protocol.events import Event, InputChanged, ItemChanged, StepChanged, TurnChanged
from vaala_protocol.ids import new_id
from vaala_protocol.items import (
    Approval,
    CommandEnd,
    Interruption,
    Item,
    PeerMessage,
    Question,
    SettingsChange,
    ToolCall,
    UserMessage,
)
from vaala_protocol.settings import Settings
from vaala_protocol.state import CommandEnded, InputInfo, PeerInput, StepInfo, TurnInfo, UserInput

replace = msgspec.structs.replace


def now_ms() -> int:
    """Wall-clock time for what is shown; order and durations never depend on it (H10-1)."""
    return time.time_ns() // 1_000_000


class Change(Struct, frozen=True):
    entry: Entry
    event: Event | None

    def apply(self, state: SessionState) -> None:
        if isinstance(self.event, ItemChanged):
            # As it is read from the stream, where the session is the stream's.
            state.note_item(replace(self.event.item, session_id=state.session_id))
        else:
            state.apply(self.entry)


def item_change(new: Item, old: Item | None = None) -> Change:
    """An item appeared, or changed from ``old``; it gets the next revision."""
    if old is not None:
        new = replace(new, rev=old.rev + 1)
    return Change(item_entry(new, old), ItemChanged(item=new))


def input_change(session_id: str, new: InputInfo, old: InputInfo | None = None) -> Change:
    return Change(input_entry(new, old), InputChanged(session_id=session_id, input=new))


def turn_change(session_id: str, new: TurnInfo, old: TurnInfo | None = None) -> Change:
    return Change(turn_entry(new, old), TurnChanged(session_id=session_id, turn=new))


def step_change(session_id: str, new: StepInfo, old: StepInfo | None = None) -> Change:
    return Change(step_entry(new, old), StepChanged(session_id=session_id, step=new))


def item_of(waiting: InputInfo, *, id: str, at: int, turn_id: str, step: int) -> Item:
    """Return the item that an input becomes when it is consumed."""
    now = now_ms()
    match waiting.source:
        case UserInput(content=content):
            return UserMessage(
                id=id, at=at, turn_id=turn_id, step=step, created_at=now, completed_at=now,
                content=content, input_id=waiting.id, client_id=waiting.client_id,
            )  # fmt: skip
        case PeerInput() as peer:
            return PeerMessage(
                id=id, at=at, turn_id=turn_id, step=step, created_at=now, completed_at=now,
                from_session=peer.from_session, content=peer.content, turn_state=peer.turn_state,
                input_id=waiting.id,
            )  # fmt: skip
        case CommandEnded() as ended:
            return CommandEnd(
                id=id, at=at, turn_id=turn_id, step=step, created_at=now, completed_at=now,
                command_id=ended.command_id, tool_call_id=ended.tool_call_id,
                command=ended.command, exit_code=ended.exit_code, signal=ended.signal,
                lost=ended.lost, output=ended.output, input_id=waiting.id,
            )  # fmt: skip


def settled(item: Item, *, crashed: bool, reason: str) -> Item | None:
    """Return ``item`` brought to its end when its step ends early; None when it is at its end.

    A call that waited never ran; one that ran when the runtime died has an unknown outcome.
    """
    now = now_ms()
    match item:
        case ToolCall(state="waiting"):
            return replace(item, state="cancelled", reason=reason, completed_at=now)
        case ToolCall(state="running"):
            state = "unknown" if crashed else "cancelled"
            return replace(item, state=state, reason=reason, completed_at=now)
        case Approval(state="pending") | Question(state="pending"):
            return replace(item, state="expired" if crashed else "withdrawn", completed_at=now)
        case _:
            return None


def interruption(turn: TurnInfo, at: int, id: str, step: int | None, reason: str) -> Interruption:
    now = now_ms()
    return Interruption(
        id=id, at=at, turn_id=turn.id, step=step, created_at=now, completed_at=now,
        by=turn.interrupted_by or "user", reason=reason,
    )  # fmt: skip


def settings_change(
    at: int, settings: Settings, turn_id: str | None, step: int | None
) -> SettingsChange:
    now = now_ms()
    return SettingsChange(
        id=new_id(), at=at, turn_id=turn_id, step=step, created_at=now, completed_at=now,
        settings=settings,
    )  # fmt: skip
