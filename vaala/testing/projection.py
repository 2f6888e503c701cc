"""`Projection`: what a client knows of a conversation, from one snapshot and what came after it.

A reference for clients, and the proof that the stream is whole: the projection of a snapshot and
all frames behind it equals any later snapshot.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from vaala import limits
from vaala.stream import Update
from vaala_protocol.events import (
    CommandChanged,
    CommandOutput,
    ConversationChanged,
    Frame,
    InputChanged,
    ItemChanged,
    ItemDelta,
    ItemDropped,
    SessionClosed,
    SessionOpened,
    SettingsChanged,
    StepChanged,
    TurnChanged,
    UnknownEvent,
    Unsaved,
    WaitsChanged,
)
from vaala_protocol.items import Item, ToolCall
from vaala_protocol.state import InputInfo, LivePart, SessionSnapshot, Snapshot

Field: TypeAlias = Literal["text", "arguments", "output"]

_replace = msgspec.structs.replace


class Gap(Exception):
    """An update does not follow what is known; subscribe again."""


class Projection:
    """Give it the updates of one subscription in order; `state` is what they add up to."""

    def __init__(self) -> None:
        self._state: Snapshot | None = None
        self._sessions: dict[str, SessionSnapshot] = {}

    @property
    def state(self) -> Snapshot:
        """The conversation as a snapshot; raises `Gap` before the first one came."""
        if self._state is None:
            raise Gap("no snapshot has come yet")
        return _replace(self._state, sessions=tuple(self._sessions.values()))

    def apply(self, update: Update) -> None:
        """Take an update. Raises `Gap`, and stays as it was, when one before it is missing."""
        if isinstance(update, Snapshot):
            self._state = update
            self._sessions = {session.info.id: session for session in update.sessions}
            return
        state = self.state
        if (update.epoch, update.first) != (state.epoch, state.seq + 1):
            raise Gap(f"frame {update.first} of {update.epoch} after {state.seq} of {state.epoch}")
        self._take(state, update)

    def _take(self, state: Snapshot, frame: Frame) -> None:
        match frame.event:
            case ConversationChanged(conversation=conversation):
                state = _replace(state, conversation=conversation)
            case SessionOpened(session=opened):
                self._sessions[opened.info.id] = opened
            case SessionClosed(session_id=session_id):
                self._sessions.pop(session_id, None)
            case UnknownEvent():
                pass  # of a newer server: it counts, and changes nothing that is known here
            case event:
                session_id = _session_of(event)
                if session_id not in self._sessions:
                    raise Gap(f"frame {frame.first} is about session {session_id}, not open here")
                self._sessions[session_id] = _after(self._sessions[session_id], event)
        self._state = _replace(state, seq=frame.seq)


_OfSession: TypeAlias = (
    SettingsChanged
    | TurnChanged
    | StepChanged
    | InputChanged
    | ItemChanged
    | ItemDelta
    | ItemDropped
    | CommandChanged
    | CommandOutput
    | WaitsChanged
    | Unsaved
)


def _session_of(event: _OfSession) -> str:
    match event:
        case ItemChanged(item=item):
            return item.session_id
        case CommandChanged(command=command):
            return command.session_id
        case _:
            return event.session_id


def _after(session: SessionSnapshot, event: _OfSession) -> SessionSnapshot:
    match event:
        case SettingsChanged(settings=settings):
            info = _replace(session.info, settings=settings)
            return _replace(session, info=info, settings=settings)
        case TurnChanged(turn=turn):
            return _replace(session, turn=turn)
        case InputChanged(input=waiting):
            return _replace(session, queue=_queue(session.queue, waiting))
        case ItemChanged(item=item, live=True):
            part = LivePart(item=item, field=_field(item), text="", next_index=0)
            return _replace(session, live=(*_others(session.live, item.id), part))
        case ItemChanged(item=item):
            live = _others(session.live, item.id)
            return _replace(session, live=live, items=_newest(session.items, item))
        case ItemDelta():
            return _replace(session, live=tuple(_grown(part, event) for part in session.live))
        case ItemDropped(item_id=item_id):
            return _replace(session, live=_others(session.live, item_id))
        case CommandChanged(command=command, ended=ended):
            others = tuple(one for one in session.commands if one.id != command.id)
            return _replace(session, commands=others if ended else (*others, command))
        case WaitsChanged(waits=waits):
            return _replace(session, waits=waits)
        case Unsaved(reason=reason):
            return _replace(session, unsaved=reason)
        case StepChanged() | CommandOutput():
            return session


def _queue(queue: tuple[InputInfo, ...], changed: InputInfo) -> tuple[InputInfo, ...]:
    pending = [waiting for waiting in queue if waiting.id != changed.id]
    if changed.state in ("waiting", "held"):
        pending.append(changed)
    return tuple(sorted(pending, key=lambda waiting: waiting.place))


def _newest(items: tuple[Item, ...], item: Item) -> tuple[Item, ...]:
    """Return the newest items with this one; of two versions the higher revision is right."""
    known = {one.id: one for one in items}
    if item.id not in known or known[item.id].rev <= item.rev:
        known[item.id] = item
    in_order = sorted(known.values(), key=lambda one: one.at)
    return tuple(in_order[-limits.SNAPSHOT_ITEMS_MAX :])


def _others(live: tuple[LivePart, ...], item_id: str) -> tuple[LivePart, ...]:
    return tuple(part for part in live if part.item.id != item_id)


def _field(item: Item) -> Field:
    """Return what of a live item is going to grow."""
    if isinstance(item, ToolCall):
        return "arguments" if item.state == "waiting" else "output"
    return "text"


def _grown(part: LivePart, delta: ItemDelta) -> LivePart:
    if part.item.id != delta.item_id:
        return part
    if (delta.field, delta.index) != (part.field, part.next_index):
        where = f"{delta.field} {delta.index}, expected {part.field} {part.next_index}"
        raise Gap(f"a delta of item {delta.item_id} at {where}")
    return _replace(part, text=part.text + delta.text, next_index=delta.index + len(delta.text))
