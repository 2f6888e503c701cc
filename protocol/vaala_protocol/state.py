"""Conversations, sessions, turns, steps, inputs and commands as clients see them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from vaala_protocol.base import Value
from vaala_protocol.content import Content
from vaala_protocol.items import Item
from vaala_protocol.settings import Settings, StopReason, Usage

ConversationStatus: TypeAlias = Literal[
    "idle", "running", "waitingApproval", "waitingAnswer", "failed"
]
TurnState: TypeAlias = Literal["running", "completed", "failed", "interrupted"]
Delivery: TypeAlias = Literal["queue", "steer"]
InputState: TypeAlias = Literal["waiting", "held", "consumed", "withdrawn"]


class Location(Value, frozen=True, kw_only=True):
    """Where a conversation works: a directory on an executor."""

    executor: str
    directory: str
    additional: tuple[str, ...] = ()


class ConversationInfo(Value, frozen=True, kw_only=True):
    id: str
    created_at: int
    updated_at: int
    title: str = ""
    locations: tuple[Location, ...] = ()
    tags: tuple[str, ...] = ()
    archived: bool = False
    fork_parent: str | None = None
    status: ConversationStatus = "idle"
    ephemeral: bool = False


class SessionInfo(Value, frozen=True, kw_only=True):
    id: str
    agent: str
    created_at: int
    settings: Settings
    parent: str | None = None
    spawned_by: str | None = None
    """The parent's turn that spawned it."""


class StepInfo(Value, frozen=True, kw_only=True):
    """One model call and its tool calls."""

    turn_id: str
    number: int
    model: str
    started_at: int
    first_byte_at: int | None = None
    answered_at: int | None = None
    ended_at: int | None = None
    finish: str | None = None
    """The finish reason as our word for it; see `vaala.models`."""
    usage: Usage = Usage()


class TurnInfo(Value, frozen=True, kw_only=True):
    id: str
    state: TurnState
    started_at: int
    settings: Settings
    instance: str
    """The run of the runtime that ran it."""
    ended_at: int | None = None
    stop_reason: StopReason | None = None
    interrupted_by: Literal["user", "shutdown", "crash", "budget"] | None = None
    message: str = ""
    """One line that tells the user why it stopped; empty for end_turn."""
    steps: int = 0
    usage: dict[str, Usage] = {}
    """By model."""


class TurnResult(Value, frozen=True, kw_only=True):
    """How a turn ended, and what the agent said last."""

    turn: TurnInfo
    text: str


class CommandEnded(Value, frozen=True, kw_only=True, tag_field="type", tag="command_ended"):
    command_id: str
    tool_call_id: str
    command: str
    exit_code: int | None = None
    signal: int | None = None
    lost: bool = False
    output: str = ""


class PeerInput(Value, frozen=True, kw_only=True, tag_field="type", tag="peer"):
    from_session: str
    content: tuple[Content, ...]
    cause: str
    """The turn or message at the sender that this came from; a repeat is dropped."""
    turn_state: str | None = None


class UserInput(Value, frozen=True, kw_only=True, tag_field="type", tag="user"):
    content: tuple[Content, ...]


InputSource: TypeAlias = UserInput | CommandEnded | PeerInput


class InputInfo(Value, frozen=True, kw_only=True):
    """Pending input: accepted and durable, not yet part of the history."""

    id: str
    client_id: str
    source: InputSource
    created_at: int
    delivery: Delivery = "queue"
    state: InputState = "waiting"
    place: int = 0
    """Order in the queue, lowest first."""
    settings: Settings | None = None
    """Overrides for the turn that it starts."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema that the last answer of its turn has to match."""


class CommandInfo(Value, frozen=True, kw_only=True):
    """A command that runs in the background of a session."""

    id: str
    session_id: str
    tool_call_id: str
    command: str
    cwd: str
    started_at: int
    executor: str = "local"
    output_bytes: int = 0


class Wait(Value, frozen=True, kw_only=True):
    """What something waits for, for people: "model: first byte", "pytest: 40 s, 3.2 MB"."""

    subject: str
    reason: str
    since: int
    deadline_at: int | None = None
    """None: until interrupted."""


class LivePart(Value, frozen=True, kw_only=True):
    """An item that is still being made: its text so far and the index of its next delta."""

    item: Item
    field: Literal["text", "arguments", "output"]
    text: str
    next_index: int


class SessionSnapshot(Value, frozen=True, kw_only=True):
    info: SessionInfo
    settings: Settings
    items: tuple[Item, ...]
    """The newest ones, in order of ``at``."""
    turn: TurnInfo | None = None
    live: tuple[LivePart, ...] = ()
    queue: tuple[InputInfo, ...] = ()
    commands: tuple[CommandInfo, ...] = ()
    waits: tuple[Wait, ...] = ()
    unsaved: str | None = None
    """Why the newest changes are not on disk yet; None when they are."""


class Snapshot(Value, frozen=True, kw_only=True):
    """A conversation at one moment; events with a higher ``seq`` of the same epoch follow it."""

    epoch: str
    seq: int
    conversation: ConversationInfo
    sessions: tuple[SessionSnapshot, ...]
    meta: dict[str, Any] = {}
