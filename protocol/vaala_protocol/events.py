"""Events: what changes in a conversation, in order, after a snapshot.

Each event is carried by a `Frame` numbered per opening of the conversation (epoch, seq). Applying
all frames after a snapshot gives the state that a later snapshot shows.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from vaala_protocol.base import Value
from vaala_protocol.items import Item
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    CommandInfo,
    ConversationInfo,
    InputInfo,
    SessionSnapshot,
    StepInfo,
    TurnInfo,
    Wait,
)


class ConversationChanged(
    Value, frozen=True, kw_only=True, tag_field="type", tag="conversation/changed"
):
    """Its title, status, place or tags are others now; it comes whole."""

    conversation: ConversationInfo


class SessionOpened(Value, frozen=True, kw_only=True, tag_field="type", tag="session/opened"):
    """A session is new, or open again: all of it, nothing needs to be known before."""

    session: SessionSnapshot


class SessionClosed(Value, frozen=True, kw_only=True, tag_field="type", tag="session/closed"):
    """A session has ended; its transcript can still be read."""

    session_id: str
    reason: str = ""


class SettingsChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="session/settings"):
    """The settings in force from here on, whole."""

    session_id: str
    settings: Settings


class TurnChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="turn/changed"):
    """A turn began, went on or ended; it comes whole."""

    session_id: str
    turn: TurnInfo


class StepChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="step/changed"):
    """A step of the running turn began, was answered or ended; it comes whole."""

    session_id: str
    step: StepInfo


class InputChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="input/changed"):
    """A message waits, was changed, moved, taken or withdrawn; it comes whole.

    Consumed and withdrawn ones are not in the queue any more.
    """

    session_id: str
    input: InputInfo


class ItemChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="item/changed"):
    """An item appeared or changed; it comes whole. ``live``: not on disk yet, deltas follow."""

    item: Item
    live: bool = False


class ItemDelta(Value, frozen=True, kw_only=True, tag_field="type", tag="item/delta"):
    """More of a live item. ``index`` counts the characters of the field before this text."""

    session_id: str
    item_id: str
    field: Literal["text", "arguments", "output"]
    index: int
    text: str


class ItemDropped(Value, frozen=True, kw_only=True, tag_field="type", tag="item/dropped"):
    """A live item is void: the call that made it is tried again."""

    session_id: str
    item_id: str


class CommandChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="command/changed"):
    """A background command began, or has ended: then it is in no list any more."""

    command: CommandInfo
    ended: bool = False


class CommandOutput(Value, frozen=True, kw_only=True, tag_field="type", tag="command/output"):
    """Output of a background command; ``index`` counts the bytes of output before it."""

    session_id: str
    command_id: str
    index: int
    text: str


class WaitsChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="session/waits"):
    """All that the session waits for now."""

    session_id: str
    waits: tuple[Wait, ...]


class Unsaved(Value, frozen=True, kw_only=True, tag_field="type", tag="session/unsaved"):
    """The newest changes are not on disk yet; ``reason`` None: they are again."""

    session_id: str
    reason: str | None = None


class UnknownEvent(Value, frozen=True, kw_only=True, tag_field="type", tag="unknown"):
    """An event of a type that this version does not know, whole: its numbers count, it is no gap.

    A client makes it of what a newer server sends; a server sends none.
    """

    unknown_type: str
    fields: dict[str, Any]


Event: TypeAlias = (
    ConversationChanged
    | SessionOpened
    | SessionClosed
    | SettingsChanged
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
    | UnknownEvent
)


class Frame(Value, frozen=True, kw_only=True):
    """One numbered event; a coalesced one covers the numbers ``first`` to ``seq``."""

    epoch: str
    first: int
    seq: int
    event: Event
