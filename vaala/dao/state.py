"""What a session's stream says, as a fold over its entries.

Folding from the first entry and folding from any checkpoint give the same state. The state holds
what a session needs to go on, never its transcript: its size does not grow with the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from vaala.dao.entries import FORMAT_MAJOR, FORMAT_MINOR, Entry, merged
from vaala_protocol.base import Malformed, Value, from_json, to_json
from vaala_protocol.calls import TERMINAL_CALL_STATES, AgentDetails, CommandDetails
from vaala_protocol.items import (
    Approval,
    CommandEnd,
    ContextCut,
    ContextSummary,
    Instructions,
    Item,
    PeerMessage,
    Plan,
    PlanStep,
    Question,
    SettingsChange,
    Skill,
    ToolCall,
    decode_item,
    encode_item,
)
from vaala_protocol.settings import Settings, Usage
from vaala_protocol.state import CommandInfo, InputInfo, SessionInfo, StepInfo, TurnInfo

LOST_AGENT = "default"
"""Works in a session whose header was lost with a damaged line: it stays usable (case G1-4)."""
CLIENT_IDS_MAX = 1_000
"""How many client ids are remembered, so that a retry of a send finds its input."""


class FileRead(Value, frozen=True, kw_only=True):
    """What the session knew of a file when it last read or wrote it."""

    size: int
    mtime_ns: int
    digest: str


class Head(Value, frozen=True, kw_only=True):
    """The state as a checkpoint stores it."""

    origin: str | None = None
    """The place that the stream was last written at; grants and queue hold only there."""
    agent: str = ""
    created_at: int = 0
    parent: str | None = None
    spawned_by: str | None = None
    settings: Settings = Settings()
    last_at: int = 0
    last_place: int = 0
    context_from: int = 0
    """Items with a lower place are left out of requests."""
    context_at: int = 0
    """The place of the newest item that changed what is in requests; 0: there is none."""
    turn: TurnInfo | None = None
    step: StepInfo | None = None
    queue: tuple[InputInfo, ...] = ()
    client_ids: dict[str, str] = {}
    """Client id to input id, oldest first."""
    grants: tuple[str, ...] = ()
    reads: dict[str, FileRead] = {}
    commands: tuple[CommandInfo, ...] = ()
    children: dict[str, str] = {}
    """Open child sessions: session id to the place of the call that spawned it, as text."""
    plan: tuple[PlanStep, ...] = ()
    instructions: dict[str, str] = {}
    skills: dict[str, str] = {}
    usage: dict[str, Usage] = {}


class SessionState(Struct):
    """Mutable fold. ``session_id`` is not in the stream: the reader of the stream knows it."""

    session_id: str
    head: Head = Head()
    queue: dict[str, InputInfo] = {}
    """Inputs that wait or are held, by id, in order of arrival; `pending` sorts by place."""
    client_ids: dict[str, str] = {}
    open: dict[str, Item] = {}
    """Items of the running step, by id."""
    format: tuple[int, int] | None = None

    @property
    def info(self) -> SessionInfo:
        head = self.head
        return SessionInfo(
            id=self.session_id,
            agent=head.agent or LOST_AGENT,
            created_at=head.created_at,
            settings=head.settings,
            parent=head.parent,
            spawned_by=head.spawned_by,
        )

    @property
    def pending(self) -> list[InputInfo]:
        return sorted(self.queue.values(), key=lambda waiting: waiting.place)

    @property
    def unsettled(self) -> list[Item]:
        """Items of the running step that are not in a terminal state."""
        return [item for item in self.open.values() if not _is_settled(item)]

    def checkpoint(self) -> Entry:
        """Return the state as an entry; only between steps, when no item is open."""
        whole = _replace(self.head, queue=tuple(self.queue.values()), client_ids=self.client_ids)
        major, minor = self.format or (FORMAT_MAJOR, FORMAT_MINOR)
        return {"t": "checkpoint", "major": major, "minor": minor, "head": to_json(whole)}

    def apply(self, entry: Mapping[str, Any]) -> Item | None:
        """Fold one entry; return the item that it made or changed, whole.

        Entries of an unknown kind are passed over: a newer minor version wrote them. Raises
        `Malformed`.
        """
        fields = dict(entry)
        match fields.pop("t", None):
            case "item":
                return self._item(fields)
            case "input":
                self._input(fields)
            case "turn":
                self._turn(fields)
            case "step":
                self._step(fields)
            case "session":
                self._set(**_header(from_json({**fields, "id": self.session_id}, SessionInfo)))
            case "checkpoint":
                self.format = _format(fields)
                self._restore(from_json(fields.get("head"), Head))
            case "format":
                self.format = _format(fields)
            case "origin":
                self._move(_key(fields, "hash"))
            case _:
                pass
        return None

    def _set(self, **fields: Any) -> None:
        self.head = _replace(self.head, **fields)

    def _restore(self, head: Head) -> None:
        self.queue = {waiting.id: waiting for waiting in head.queue}
        self.client_ids = dict(head.client_ids)
        self.open = {}
        self.head = _replace(head, queue=(), client_ids={})

    def _move(self, origin: str) -> None:
        """Note where the stream is written from here on.

        What was allowed, waits, or was seen of files somewhere else does not hold here.
        """
        if self.head.origin != origin:
            self.queue = {}
            self._set(grants=(), reads={})
        self._set(origin=origin)

    def _input(self, fields: dict[str, Any]) -> None:
        old = self.queue.get(_key(fields, "id"))
        new = from_json(merged(to_json(old) if old else {}, fields), InputInfo)
        if new.state in ("waiting", "held"):
            self.queue[new.id] = new
        else:
            self.queue.pop(new.id, None)
        if old is None:
            self.client_ids[new.client_id] = new.id
            if len(self.client_ids) > CLIENT_IDS_MAX:
                del self.client_ids[next(iter(self.client_ids))]
        self._set(last_place=max(self.head.last_place, new.place))

    def _turn(self, fields: dict[str, Any]) -> None:
        old = self.head.turn
        same = old is not None and old.id == _key(fields, "id")
        turn = from_json(merged(to_json(old) if same else {}, fields), TurnInfo)
        usage = self.head.usage
        if turn.state != "running":
            self.open = {}
        if turn.state != "running" and not (same and old is not None and old.state != "running"):
            usage = dict(usage)
            for model, used in turn.usage.items():
                usage[model] = usage.get(model, Usage()) + used
        self._set(turn=turn, usage=usage, step=self.head.step if same else None)

    def _step(self, fields: dict[str, Any]) -> None:
        old = self.head.step
        key = (_key(fields, "turnId"), fields.get("number"))
        same = old is not None and (old.turn_id, old.number) == key
        step = from_json(merged(to_json(old) if same else {}, fields), StepInfo)
        if step.ended_at is not None:
            self.open = {}
        self._set(step=step)

    def _item(self, fields: dict[str, Any]) -> Item:
        old = self.open.get(_key(fields, "id"))
        if old is None and "kind" not in fields:
            raise Malformed(f"item {fields['id']}: a change without the item")
        whole = merged(encode_item(old), fields) if old else fields
        item = decode_item(whole, self.session_id)
        self.note_item(item)
        return item

    def note_item(self, item: Item) -> None:
        """Take an item, whole, into the state."""
        if item.step is not None:
            self.open[item.id] = item
        changes = _effects(self.head, item)
        self._set(last_at=max(self.head.last_at, item.at), **changes)


def _effects(head: Head, item: Item) -> dict[str, Any]:
    """Return the fields of the head that this item changes."""
    match item:
        case SettingsChange():
            return {"settings": item.settings}
        case ContextCut() | ContextSummary():
            return _lessened(head, item)
        case Plan():
            return {"plan": item.steps}
        case Instructions():
            return {"instructions": {**head.instructions, item.source: item.text}}
        case Skill():
            return {"skills": {**head.skills, item.name: item.text}}
        case Approval():
            return _granted(head, item)
        case ToolCall():
            return _started(head, item)
        case CommandEnd():
            left = tuple(c for c in head.commands if c.id != item.command_id)
            return {"commands": left}
        case PeerMessage() if item.turn_state is not None:
            return {"children": {k: v for k, v in head.children.items() if k != item.from_session}}
        case _:
            return {}


def _lessened(head: Head, item: ContextCut | ContextSummary) -> dict[str, Any]:
    """Note what requests leave out. What an item covers lies before it, whatever it says."""
    covers = min(item.covers, item.at - 1)
    return {
        "context_from": max(head.context_from, covers + 1),
        "context_at": max(head.context_at, item.at),
    }


def _granted(head: Head, item: Approval) -> dict[str, Any]:
    if item.answer is None:
        return {}
    for option in item.options:
        if option.id == item.answer.option and option.scope != "call" and option.rule:
            rule = option.rule
            return {"grants": head.grants if rule in head.grants else (*head.grants, rule)}
    return {}


def _started(head: Head, item: ToolCall) -> dict[str, Any]:
    """What a call left running: a command in the background, a child session."""
    match item.details:
        case CommandDetails(background=True, command_id=str(command_id)) if item.state == "done":
            known = {command.id for command in head.commands}
            if command_id in known or item.details.exit_code is not None:
                return {}
            command = CommandInfo(
                id=command_id,
                session_id=item.session_id,
                tool_call_id=item.id,
                command=item.details.command,
                cwd=item.details.cwd,
                executor=item.details.executor,
                started_at=item.started_at or item.created_at,
            )
            return {"commands": (*head.commands, command)}
        case AgentDetails(action="spawn", session_id=str(child)):
            return {"children": {**head.children, child: str(item.at)}}
        case AgentDetails(action="spawn") if item.state == "error":
            place = str(item.at)
            return {"children": {k: v for k, v in head.children.items() if v != place}}
        case AgentDetails(action="wait", session_id=str(child)) if item.state == "done":
            return {"children": {k: v for k, v in head.children.items() if k != child}}
        case _:
            return {}


def _is_settled(item: Item) -> bool:
    match item:
        case ToolCall():
            return item.state in TERMINAL_CALL_STATES
        case Approval() | Question():
            return item.state != "pending"
        case _:
            return True


def _header(info: SessionInfo) -> dict[str, Any]:
    return {
        "agent": info.agent,
        "created_at": info.created_at,
        "parent": info.parent,
        "spawned_by": info.spawned_by,
        "settings": info.settings,
    }


def _format(fields: Mapping[str, Any]) -> tuple[int, int]:
    match fields:
        case {"major": int(major), "minor": int(minor)}:
            return major, minor
        case _:
            raise Malformed("a format without major and minor")


def _key(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise Malformed(f"an entry without {name}")
    return value


def _replace(head: Head, **fields: Any) -> Head:
    return msgspec.structs.replace(head, **fields)
