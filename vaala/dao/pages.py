"""What is asked of a store and what it answers, page by page."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from vaala_protocol.items import Item
from vaala_protocol.state import ConversationInfo, ConversationStatus, StepInfo, TurnInfo
from vaala_storage.log import Damage


class ItemPage(Struct, frozen=True):
    """Items in order of ``at``, oldest first."""

    items: tuple[Item, ...]
    earlier: bool
    """There are items before the first of the page."""
    later: bool
    """There are logged items after the last of the page."""
    damage: tuple[Damage, ...] = ()


class TurnPage(Struct, frozen=True):
    """Turns, newest first."""

    turns: tuple[TurnInfo, ...]
    cursor: int | None
    """Pass it to get older ones; None: these were the oldest."""


class StepPage(Struct, frozen=True):
    """Steps, newest first."""

    steps: tuple[StepInfo, ...]
    cursor: int | None


class ListQuery(Struct, frozen=True):
    """Which conversations, in which order. None: does not matter."""

    order: Literal["updated", "created"] = "updated"
    """``created`` goes by id: when the conversation began in this data directory."""
    newest_first: bool = True
    archived: bool | None = False
    tag: str | None = None
    directory: str | None = None
    """The directory of the first location."""
    status: ConversationStatus | None = None


class ConversationRow(Struct, frozen=True):
    """A conversation as the list shows it."""

    info: ConversationInfo
    sessions: int
    turns: int
    items: int
    snippet: str
    """How the last message begins."""

    @property
    def id(self) -> str:
        return self.info.id


class ConversationPage(Struct, frozen=True):
    rows: tuple[ConversationRow, ...]
    cursor: str | None
    """Pass it with the same query to get the next page; None: this was the last."""
    complete: bool = True
    """False while the index is being rebuilt: conversations may be missing."""

    @property
    def conversations(self) -> tuple[ConversationInfo, ...]:
        return tuple(row.info for row in self.rows)


class SearchResult(Struct, frozen=True):
    conversation: ConversationInfo
    item_id: str | None
    """The message that matched; None: the title did."""
    snippet: str


class SearchPage(Struct, frozen=True):
    results: tuple[SearchResult, ...]
    cursor: str | None
    complete: bool = True


class ReindexReport(Struct, frozen=True):
    conversations: int
    removed: int
    """Rows whose conversation is gone."""
    unreadable: tuple[str, ...]
    """Conversations that could not be read, by id, at most a hundred."""
    damaged: int
    """Conversations with a gap in a stream."""
