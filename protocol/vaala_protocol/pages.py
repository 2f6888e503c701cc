"""Pages of conversations and items: what lists and searches ask for and answer."""

from __future__ import annotations

from typing import Literal

from vaala_protocol.base import Value
from vaala_protocol.items import Item
from vaala_protocol.state import ConversationInfo, ConversationStatus


class Gap(Value, frozen=True, kw_only=True):
    """Entries ``first`` to ``last`` of a stream that cannot be read (None: not known)."""

    first: int | None = None
    last: int | None = None
    detail: str


class ItemPage(Value, frozen=True, kw_only=True):
    """Items in order of ``at``, oldest first."""

    items: tuple[Item, ...]
    earlier: bool
    """There are items before the first of the page."""
    later: bool
    """There are logged items after the last of the page."""
    damage: tuple[Gap, ...] = ()


class ListQuery(Value, frozen=True, kw_only=True):
    """Which conversations, in which order. None: does not matter."""

    order: Literal["updated", "created"] = "updated"
    """``created`` goes by id: when the conversation began in this data directory."""
    newest_first: bool = True
    archived: bool | None = False
    tag: str | None = None
    directory: str | None = None
    """The directory of the first location."""
    status: ConversationStatus | None = None


class ConversationRow(Value, frozen=True, kw_only=True):
    """A conversation as lists show it."""

    info: ConversationInfo
    sessions: int = 0
    turns: int = 0
    items: int = 0
    snippet: str = ""
    """How the last message begins."""

    @property
    def id(self) -> str:
        return self.info.id


class ConversationPage(Value, frozen=True, kw_only=True):
    rows: tuple[ConversationRow, ...]
    cursor: str | None = None
    """Pass it with the same query to get the next page; None: this was the last."""
    complete: bool = True
    """False while the index is being rebuilt or cannot be written, on a full disk, say:
    conversations may be missing, or shown as they were."""

    @property
    def conversations(self) -> tuple[ConversationInfo, ...]:
        return tuple(row.info for row in self.rows)


class SearchResult(Value, frozen=True, kw_only=True):
    conversation: ConversationInfo
    item_id: str | None = None
    """The message that matched; None: the title did."""
    snippet: str = ""


class SearchPage(Value, frozen=True, kw_only=True):
    results: tuple[SearchResult, ...]
    cursor: str | None = None
    complete: bool = True
