"""``conversation/``: making, finding, watching and keeping conversations."""

from __future__ import annotations

from vaala_protocol.base import Value
from vaala_protocol.events import Frame
from vaala_protocol.methods.base import Done, Notification, Request
from vaala_protocol.pages import ConversationPage, ConversationRow, ListQuery, SearchPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo, Snapshot
from vaala_protocol.usage import ConversationSpent


class ConversationCreateParams(Value, Request[ConversationInfo], frozen=True, kw_only=True):
    """Make a conversation. Nothing of it is on disk before its first message."""

    method = "conversation/create"
    result = ConversationInfo

    directory: str
    """Absolute, on the executor."""
    executor: str = "local"
    agent: str = "default"
    settings: Settings = Settings()
    title: str = ""
    ephemeral: bool = False
    client_id: str | None = None
    """The same again finds the conversation that was made first."""


class ConversationListParams(Value, Request[ConversationPage], frozen=True, kw_only=True):
    """Return a page of conversations."""

    method = "conversation/list"
    result = ConversationPage

    query: ListQuery = ListQuery()
    cursor: str | None = None
    limit: int = 50
    """1 to 1,000; a page may have fewer, and then tells that there are more."""


class ConversationSearchParams(Value, Request[SearchPage], frozen=True, kw_only=True):
    """Return titles and messages that hold every word, best first."""

    method = "conversation/search"
    result = SearchPage

    text: str
    cursor: str | None = None
    limit: int = 20
    """1 to 1,000; a page may have fewer, and then tells that there are more."""


class ConversationGetParams(Value, Request[ConversationRow], frozen=True, kw_only=True):
    """Return a conversation as lists show it.

    One that nobody has said anything in is in no list; it is found when it is open.
    """

    method = "conversation/get"
    result = ConversationRow

    conversation_id: str


class ConversationUsageParams(Value, Request[ConversationSpent], frozen=True, kw_only=True):
    """Return what the turns of a conversation used and cost, by session and turn."""

    method = "conversation/usage"
    result = ConversationSpent

    conversation_id: str
    since: int | None = None
    """Only turns that ended at this time or later, or run."""


class Position(Value, frozen=True, kw_only=True):
    """Up to where a client knows a conversation."""

    epoch: str
    seq: int


class ConversationSubscribeResult(Value, frozen=True, kw_only=True):
    snapshot: Snapshot | None = None
    """None: the events after the position that was given follow, without a gap."""


class ConversationSubscribeParams(
    Value, Request[ConversationSubscribeResult], frozen=True, kw_only=True
):
    """Watch a conversation: a snapshot, then every event. Once more: begins anew."""

    method = "conversation/subscribe"
    result = ConversationSubscribeResult

    conversation_id: str
    after: Position | None = None
    """Continue here when the server still can."""


class ConversationUnsubscribeParams(Value, Request[Done], frozen=True, kw_only=True):
    """Stop watching a conversation."""

    method = "conversation/unsubscribe"
    result = Done

    conversation_id: str


class ConversationRenameParams(Value, Request[ConversationInfo], frozen=True, kw_only=True):
    """Give a conversation a title."""

    method = "conversation/rename"
    result = ConversationInfo

    conversation_id: str
    title: str


class ConversationUpdateParams(Value, Request[ConversationInfo], frozen=True, kw_only=True):
    """Change the work directory or the tags; what is left out stays."""

    method = "conversation/update"
    result = ConversationInfo

    conversation_id: str
    directory: str | None = None
    tags: tuple[str, ...] | None = None


class ConversationArchiveParams(Value, Request[ConversationInfo], frozen=True, kw_only=True):
    """Take a conversation out of the usual list, or put it back."""

    method = "conversation/archive"
    result = ConversationInfo

    conversation_id: str
    archived: bool = True


class ConversationForkParams(Value, Request[ConversationInfo], frozen=True, kw_only=True):
    """Copy a conversation up to the end of a step; the copy goes its own way."""

    method = "conversation/fork"
    result = ConversationInfo

    conversation_id: str
    turn_id: str | None = None
    """The last turn to take along; left out: all that has ended."""


class ConversationDeleteParams(Value, Request[Done], frozen=True, kw_only=True):
    """End what runs in a conversation and delete it for good; done whole, whoever disconnects."""

    method = "conversation/delete"
    result = Done

    conversation_id: str


class ConversationExportResult(Value, frozen=True, kw_only=True):
    size_bytes: int


class ConversationExportParams(Value, Request[ConversationExportResult], frozen=True, kw_only=True):
    """Write a conversation as an archive to a new file of the server's machine."""

    method = "conversation/export"
    result = ConversationExportResult

    conversation_id: str
    path: str
    """Absolute; refused when something is there."""


class ConversationImportParams(Value, Request[ConversationInfo], frozen=True, kw_only=True):
    """Add a conversation from an archive on the server's machine."""

    method = "conversation/import"
    result = ConversationInfo

    path: str


class EventNotification(Value, Notification, frozen=True, kw_only=True):
    """What changed in a conversation that the client watches."""

    method = "conversation/event"

    conversation_id: str
    frame: Frame


class ResyncNotification(Value, Notification, frozen=True, kw_only=True):
    """The client fell behind or the conversation was opened anew: this replaces all it knew."""

    method = "conversation/resync"

    conversation_id: str
    snapshot: Snapshot


class ClosedNotification(Value, Notification, frozen=True, kw_only=True):
    """The client does not watch this conversation any more."""

    method = "conversation/closed"

    conversation_id: str
    reason: str
