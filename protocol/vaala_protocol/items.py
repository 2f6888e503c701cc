"""Items: what a transcript is made of. Defined once; stored and sent JSON are the same.

``at`` is an item's place in its session: increasing, gaps allowed. An item changes only within
its step; what happens later is a new item that names the old one. In a stream the session is the
stream, so ``sessionId`` is left out there and filled in when an item is read (`decode_item`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

from vaala_protocol.base import Malformed, Value, from_json, to_json
from vaala_protocol.calls import CallDetails, CallState
from vaala_protocol.content import Content
from vaala_protocol.settings import ErrorKind, Settings, Usage


class Private(Value, frozen=True, kw_only=True):
    """Opaque provider data (signature, encrypted reasoning, call id), kept byte-exact.

    Replayed only to the same provider, API and model; never leaves the server.
    """

    provider: str
    api: str
    model: str
    data: dict[str, Any]


class ItemBase(Value, frozen=True, kw_only=True, tag_field="kind"):
    """What every item has."""

    id: str
    at: int
    """Its place in the session: items are shown in this order."""
    created_at: int
    """Milliseconds since the epoch, UTC."""
    session_id: str = ""
    turn_id: str | None = None
    step: int | None = None
    """The number of the step in its turn, from 1; None for what belongs to no step."""
    completed_at: int | None = None
    rev: int = 1
    """Counts the item's logged entries; of two versions the higher one is right."""


class UserMessage(ItemBase, frozen=True, kw_only=True, tag="user_message"):
    """What a person said; it was an input before."""

    content: tuple[Content, ...]
    input_id: str | None = None
    client_id: str | None = None


class AssistantMessage(ItemBase, frozen=True, kw_only=True, tag="assistant_message"):
    """What the model said."""

    text: str = ""
    partial: bool = False
    """The stream ended before the message did."""
    private: Private | None = None


class PeerMessage(ItemBase, frozen=True, kw_only=True, tag="peer_message"):
    """From another agent: a child's result, or a message between sessions."""

    from_session: str
    content: tuple[Content, ...]
    turn_state: str | None = None
    """For a child's result: how its turn ended."""
    input_id: str | None = None


class Reasoning(ItemBase, frozen=True, kw_only=True, tag="reasoning"):
    """What the model thought, as far as its provider shows it."""

    text: str = ""
    partial: bool = False
    private: Private | None = None


class ToolCall(ItemBase, frozen=True, kw_only=True, tag="tool_call"):
    """A call of a tool: what it asks for, whether it may run, how it ended."""

    name: str
    arguments: str
    """The arguments as the model wrote them."""
    details: CallDetails
    state: CallState = "waiting"
    title: str = ""
    result: tuple[Content, ...] = ()
    started_at: int | None = None
    served_by: str | None = None
    """The client that ran the tool, ran the command, or read or wrote the file; None: no client.
    """
    reason: str | None = None
    """Why it was denied, cancelled or is unknown; one line for people."""
    private: Private | None = None


class ModelError(ItemBase, frozen=True, kw_only=True, tag="model_error"):
    """A call of the model failed; it is tried again, or the turn ends."""

    error: ErrorKind
    message: str
    attempt: int = 1
    retry_in_ms: int | None = None
    """None when this failure ended the turn."""


class ContextChange(ItemBase, frozen=True, kw_only=True):
    """From here on requests hold less of what came before; the transcript stays whole."""

    covers: int
    """Items with a place up to this one are left out of requests."""
    keeps: tuple[int, ...] = ()
    """Places of items that stay, though they are covered: what was asked for, rules, the plan, and
    what still runs. They stand first."""
    kept_bytes: int = 0
    """What stays of the text of each of them, head and tail; 0: all."""
    tokens_before: int = 0
    """The size of the next request without the change, as it was estimated."""
    tokens_after: int = 0


class ContextSummary(ContextChange, frozen=True, kw_only=True, tag="context_summary"):
    """Stands in requests for the items that it covers; written by the session's model."""

    text: str
    model: str = ""
    usage: Usage = Usage()
    """What the model used for it; it counts in its turn."""


class ContextCut(ContextChange, frozen=True, kw_only=True, tag="context_cut"):
    """Items are left out of requests without a summary, or results of calls are shortened."""

    reason: str = ""
    shortens: int = 0
    """Results of calls with a place up to this one are shortened to head and tail; 0: none. The
    whole of such a result is in the blob that has the id of its call as its key."""
    result_bytes: int = 0
    """What stays of each of these results."""


class SettingsChange(ItemBase, frozen=True, kw_only=True, tag="settings_change"):
    """The settings were changed here."""

    settings: Settings
    """The settings in force from here on, whole."""


class ExecutorChange(ItemBase, frozen=True, kw_only=True, tag="executor_change"):
    """The session works in another place from here on."""

    executor: str
    directory: str


class Skill(ItemBase, frozen=True, kw_only=True, tag="skill"):
    """A skill that was given to the model."""

    name: str
    text: str


class Instructions(ItemBase, frozen=True, kw_only=True, tag="instructions"):
    """Rules that were given to the model from a file."""

    source: str
    text: str


class HookRun(ItemBase, frozen=True, kw_only=True, tag="hook_run"):
    """A hook ran, and what came of it."""

    hook: str
    event: str
    outcome: str
    output: str = ""


class ApprovalOption(Value, frozen=True, kw_only=True):
    id: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
    label: str
    scope: Literal["call", "session", "config"] = "call"
    rule: str | None = None
    """What is remembered when the scope is wider than the call."""


class ApprovalAnswer(Value, frozen=True, kw_only=True):
    option: str
    by: str
    reason: str = ""
    interrupt: bool = False


class Approval(ItemBase, frozen=True, kw_only=True, tag="approval"):
    """A decision that a call waits for; answered by id, the first answer wins."""

    tool_call_id: str
    digest: str
    """SHA-256 of tool name and arguments: the exact call that is approved."""
    options: tuple[ApprovalOption, ...]
    reason: str = ""
    state: Literal["pending", "answered", "withdrawn", "expired"] = "pending"
    answer: ApprovalAnswer | None = None


class Question(ItemBase, frozen=True, kw_only=True, tag="question"):
    """A question of the agent to a person; answered by id, the first answer wins."""

    tool_call_id: str | None = None
    """The call that asks."""
    text: str
    choices: tuple[str, ...] = ()
    state: Literal["pending", "answered", "withdrawn", "expired"] = "pending"
    answer: str | None = None
    answered_by: str | None = None


class Notice(ItemBase, frozen=True, kw_only=True, tag="notice"):
    """One line from the runtime to the person; never sent to the model."""

    level: Literal["info", "warning", "error"]
    text: str
    code: str = ""
    """What it is about, for programs; ``request_cut``: a server seems to have cut a request."""


class Interruption(ItemBase, frozen=True, kw_only=True, tag="interruption"):
    """The turn was ended before it was done."""

    by: Literal["user", "shutdown", "crash", "budget"]
    reason: str = ""


class PlanStep(Value, frozen=True, kw_only=True):
    text: str
    state: Literal["pending", "in_progress", "completed"] = "pending"


class Plan(ItemBase, frozen=True, kw_only=True, tag="plan"):
    """What the agent plans to do, and how far it is; the newest one counts."""

    steps: tuple[PlanStep, ...]


class CommandEnd(ItemBase, frozen=True, kw_only=True, tag="command_end"):
    """A background command ended; the call that started it is closed long since."""

    command_id: str
    tool_call_id: str
    command: str
    exit_code: int | None = None
    signal: int | None = None
    lost: bool = False
    """The runtime ended while the command ran."""
    output: str = ""
    input_id: str | None = None


class UnknownItem(ItemBase, frozen=True, kw_only=True, tag="unknown"):
    """An item of a kind that this version does not know: kept whole, shown by its kind."""

    unknown_kind: str
    fields: dict[str, Any]


Item: TypeAlias = (
    UserMessage
    | AssistantMessage
    | PeerMessage
    | Reasoning
    | ToolCall
    | ModelError
    | ContextSummary
    | ContextCut
    | SettingsChange
    | ExecutorChange
    | Skill
    | Instructions
    | HookRun
    | Approval
    | Question
    | Notice
    | Interruption
    | Plan
    | CommandEnd
    | UnknownItem
)

_KINDS: dict[str, type[Any]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        UserMessage, AssistantMessage, PeerMessage, Reasoning, ToolCall, ModelError,
        ContextSummary, ContextCut, SettingsChange, ExecutorChange, Skill, Instructions, HookRun,
        Approval, Question, Notice, Interruption, Plan, CommandEnd,
    )
}  # fmt: skip
KNOWN_KINDS = frozenset(_KINDS)


def encode_item(item: Item) -> dict[str, Any]:
    """Return the item's JSON as it is stored: without ``sessionId``."""
    if isinstance(item, UnknownItem):
        return dict(item.fields)
    fields: dict[str, Any] = to_json(item)
    fields.pop("sessionId", None)
    return fields


def decode_item(fields: Mapping[str, Any], session_id: str) -> Item:
    """Build an item from its stored JSON, whole; raises `Malformed`.

    What this version does not know, a kind or what stands inside an item of a known kind (a
    state, a content block), was written by a newer one: it becomes an `UnknownItem`, which keeps
    every field.
    """
    kind = fields.get("kind")
    if not isinstance(kind, str):
        raise Malformed("an item without a kind")
    known = _KINDS.get(kind)
    if known is not None:
        with suppress(Malformed):
            item: Item = from_json({**fields, "sessionId": session_id}, known)
            return item
    head = {name: fields[name] for name in _HEAD if name in fields}
    return from_json(
        {**head, "sessionId": session_id, "kind": "unknown",
         "unknownKind": kind, "fields": dict(fields)},
        UnknownItem,
    )  # fmt: skip


_HEAD = ("id", "at", "createdAt", "turnId", "step", "completedAt", "rev")
