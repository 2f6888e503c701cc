"""``runtime/``: the server itself, and what goes on in all of its conversations."""

from __future__ import annotations

from typing import Literal, TypeAlias

from vaala_protocol.base import Value
from vaala_protocol.events import UnknownEvent
from vaala_protocol.items import Approval, Question
from vaala_protocol.methods.base import Done, Notification, Request
from vaala_protocol.pages import ConversationRow
from vaala_protocol.state import CommandInfo, ConversationStatus, Wait
from vaala_protocol.usage import UsagePage

PROTOCOL_VERSION = "1.0"
"""Major and minor; a server speaks with every client of its major version."""


class ClientInfo(Value, frozen=True, kw_only=True):
    name: str
    version: str
    library: str = ""
    """The version of vaala's own client library; empty for every other client."""


class ClientEnvironment(Value, frozen=True, kw_only=True):
    """What a client on the same machine runs in; kept in the server's memory alone."""

    directory: str
    """The client's working directory."""
    keys: dict[str, str] = {}
    """Variables of model providers. Below the configuration; commands never see them."""
    overlay: dict[str, str | None] = {}
    """Variables for local commands, such as PATH; None: not set."""

    def __repr__(self) -> str:
        """Tell the directory alone: a log or a traceback must not show keys."""
        return f"{type(self).__name__}(directory={self.directory!r})"


class ServerInfo(Value, frozen=True, kw_only=True):
    version: str
    protocol: str
    instance: str
    """Names this run of the server."""
    pid: int
    data_directory: str
    started_at: int
    auto_started: bool = False
    """A client started it; it ends by itself when it is idle for long."""


class WantedVariables(Value, frozen=True, kw_only=True):
    """Variables that the configuration of the server names besides those that are always told."""

    keys: tuple[str, ...] = ()
    """For `ClientEnvironment.keys`."""
    forward: tuple[str, ...] = ()
    """For `ClientEnvironment.overlay`."""


class InitializeResult(Value, frozen=True, kw_only=True):
    server: ServerInfo
    wanted: WantedVariables = WantedVariables()
    """What a client on the same machine tells by ``client/environment`` where it has any of it."""
    notices: tuple[str, ...] = ()
    """Lines for the person: an upgrade that waits, a configuration that cannot be loaded."""


class InitializeParams(Value, Request[InitializeResult], frozen=True, kw_only=True):
    """Say who the client is and which protocol it speaks; the first request of a connection.

    Refused as ``incompatible`` when the major versions differ. Refused as ``outdated`` by a server
    that a client has started, that is older than this one and has nothing to do: it ends now, and
    the client starts its own.
    """

    method = "runtime/initialize"
    result = InitializeResult

    client: ClientInfo
    protocol: str = PROTOCOL_VERSION
    environment: ClientEnvironment | None = None


class SessionStatus(Value, frozen=True, kw_only=True):
    """A live session: what runs in it and what it waits for."""

    id: str
    agent: str
    parent: str | None = None
    turn_id: str | None = None
    turn_started_at: int | None = None
    steps: int = 0
    waits: tuple[Wait, ...] = ()
    commands: tuple[CommandInfo, ...] = ()
    queued: int = 0
    unsaved: str | None = None


class ConversationActivity(Value, frozen=True, kw_only=True):
    """An open conversation, with its live sessions."""

    id: str
    title: str
    status: ConversationStatus
    subscribers: int
    sessions: tuple[SessionStatus, ...] = ()


class RuntimeStatusResult(Value, frozen=True, kw_only=True):
    server: ServerInfo
    address: str
    clients: int
    memory_bytes: int
    """Resident memory of the server."""
    conversations: tuple[ConversationActivity, ...] = ()
    """Of very many, those in which something runs, then those that were used last."""
    open_conversations: int = 0
    config_generation: int = 0
    notices: tuple[str, ...] = ()


class RuntimeStatusParams(Value, Request[RuntimeStatusResult], frozen=True, kw_only=True):
    """Return what is alive in the server now: conversations, turns, commands, waits."""

    method = "runtime/status"
    result = RuntimeStatusResult


class ConfigProblem(Value, frozen=True, kw_only=True):
    """What is wrong in the configuration, and where."""

    file: str
    line: int | None = None
    key: str = ""
    text: str


class PendingDecision(Value, frozen=True, kw_only=True):
    """An approval or question that waits for a person, with where it is."""

    conversation_id: str
    session_id: str
    conversation_title: str = ""
    title: str = ""
    """For an approval: what its call would do, in one line."""
    decision: Approval | Question


class RuntimeSnapshot(Value, frozen=True, kw_only=True):
    """Conversations, newest first (the list has the rest), and all that waits for a person."""

    epoch: str
    seq: int
    conversations: tuple[ConversationRow, ...]
    pending: tuple[PendingDecision, ...]
    config_generation: int = 0
    config_problems: tuple[ConfigProblem, ...] = ()


class RowChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="row/changed"):
    """A conversation is new or its row is another now."""

    row: ConversationRow


class RowRemoved(Value, frozen=True, kw_only=True, tag_field="type", tag="row/removed"):
    """A conversation was deleted."""

    conversation_id: str


class DecisionPending(Value, frozen=True, kw_only=True, tag_field="type", tag="decision/pending"):
    """An approval or a question waits for a person."""

    pending: PendingDecision


class DecisionSettled(Value, frozen=True, kw_only=True, tag_field="type", tag="decision/settled"):
    """It waits no more: answered, withdrawn or expired."""

    conversation_id: str
    decision_id: str


class ConfigChanged(Value, frozen=True, kw_only=True, tag_field="type", tag="config/changed"):
    """A configuration was loaded, or could not be: then the one before stays in force."""

    generation: int
    problems: tuple[ConfigProblem, ...] = ()


RuntimeEvent: TypeAlias = (
    RowChanged | RowRemoved | DecisionPending | DecisionSettled | ConfigChanged | UnknownEvent
)


class RuntimeFrame(Value, frozen=True, kw_only=True):
    """One numbered event of the runtime; numbers begin at 1 with each epoch."""

    epoch: str
    seq: int
    event: RuntimeEvent

    @property
    def first(self) -> int:
        """As of a frame of a conversation: it covers one number."""
        return self.seq


class RuntimeSubscribeParams(Value, Request[RuntimeSnapshot], frozen=True, kw_only=True):
    """Watch all conversations at once: the answer is a snapshot, events follow."""

    method = "runtime/subscribe"
    result = RuntimeSnapshot


class RuntimeUnsubscribeParams(Value, Request[Done], frozen=True, kw_only=True):
    """Stop watching all conversations."""

    method = "runtime/unsubscribe"
    result = Done


class RuntimeUsageParams(Value, Request[UsagePage], frozen=True, kw_only=True):
    """Return what conversations used and cost, a page of them; sums are the client's to make."""

    method = "runtime/usage"
    result = UsagePage

    since: int | None = None
    """Only turns that ended at this time or later, or run."""
    cursor: str | None = None
    limit: int = 50
    """1 to 1,000; a page may have fewer, and then tells that there are more."""


class ReloadResult(Value, frozen=True, kw_only=True):
    generation: int
    """Counts the configurations that were loaded; the same as before when nothing was."""
    problems: tuple[ConfigProblem, ...] = ()
    """Why the configuration before stays in force; empty: the new one is."""


class ReloadParams(Value, Request[ReloadResult], frozen=True, kw_only=True):
    """Load the configuration again. One with problems changes nothing."""

    method = "runtime/reload"
    result = ReloadResult


class ShutdownParams(Value, Request[Done], frozen=True, kw_only=True):
    """End the server: running turns are interrupted, everything is written down."""

    method = "runtime/shutdown"
    result = Done

    only_if_idle: bool = False
    """Refused as ``busy`` while a turn or a command runs."""
    reason: str = ""


class RuntimeEventNotification(Value, Notification, frozen=True, kw_only=True):
    """An event for those who watch all conversations."""

    method = "runtime/event"

    frame: RuntimeFrame


class RuntimeResyncNotification(Value, Notification, frozen=True, kw_only=True):
    """The client fell behind: this snapshot replaces all it knew."""

    method = "runtime/resync"

    snapshot: RuntimeSnapshot


class NoticeNotification(Value, Notification, frozen=True, kw_only=True):
    """One line for the person."""

    method = "runtime/notice"

    level: Literal["info", "warning", "error"]
    text: str
