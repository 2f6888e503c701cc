"""A conversation's row in the index: a pure function of the entries of its streams.

Each stream is folded for itself, so the order between streams does not matter, and a row says how
far it has come in each: an old row is brought up to date from there. Folding is total: an entry
that makes no sense changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from vaala.dao.blocks import ends_block
from vaala.dao.entries import METADATA_STREAM, ROOT_STREAM
from vaala.dao.limits import SEARCH_TEXT_CHARS_MAX, SNIPPET_CHARS_MAX, TITLE_CHARS_MAX
from vaala.dao.metadata import Metadata, decode_metadata
from vaala_protocol.base import Malformed, from_json, to_json
from vaala_protocol.pages import ConversationRow
from vaala_protocol.state import ConversationInfo, ConversationStatus
from vaala_storage.records import Record
from vaala_storage.search import Document

ROW_VERSION = 1
"""Rows of another version are made anew."""

TEXT_FIELD = "text"
TITLE_FIELD = "title"
_MESSAGES = frozenset({"user_message", "assistant_message"})


class StreamRow(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What one session's stream says, up to ``seq``. Mutable: it is the state of a fold."""

    seq: int = 0
    items: int = 0
    turns: int = 0
    turn: str | None = None
    """State of the newest turn."""
    active_at: int = 0
    open: dict[str, str] = {}
    """Messages, approvals and questions of the running step: id to kind."""
    pending: dict[str, str] = {}
    """Approvals and questions that wait for an answer: id to kind."""
    first: str = ""
    """How the first message begins."""
    last_at: int = 0
    last_id: str = ""
    last: str = ""
    """How the message with the highest place begins."""


class Row(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    version: int = 0
    metadata_seq: int = 0
    metadata: Metadata = Metadata()
    streams: dict[str, StreamRow] = {}

    def sequence(self, stream: str) -> int:
        if stream == METADATA_STREAM:
            return self.metadata_seq
        found = self.streams.get(stream)
        return found.seq if found else 0

    @property
    def root(self) -> StreamRow:
        return self.streams.get(ROOT_STREAM, StreamRow())

    @property
    def active_at(self) -> int:
        return max((stream.active_at for stream in self.streams.values()), default=0)

    def status(self, *, live: bool) -> ConversationStatus:
        """Return the status; what no runtime has open (not ``live``) can neither run nor wait."""
        if live:
            pending = {kind for stream in self.streams.values() for kind in stream.pending.values()}
            if "approval" in pending:
                return "waitingApproval"
            if "question" in pending:
                return "waitingAnswer"
            if any(stream.turn == "running" for stream in self.streams.values()):
                return "running"
        return "failed" if self.root.turn == "failed" else "idle"

    @property
    def title(self) -> str:
        return self.metadata.title or self.metadata.made_title or self.root.first

    def info(self, conversation_id: str, *, live: bool) -> ConversationInfo:
        info = self.metadata.info(conversation_id, title=self.root.first, updated_at=self.active_at)
        return msgspec.structs.replace(info, status=self.status(live=live))

    def shown(self, conversation_id: str, *, live: bool) -> ConversationRow:
        return ConversationRow(
            info=self.info(conversation_id, live=live),
            sessions=len(self.streams),
            turns=sum(stream.turns for stream in self.streams.values()),
            items=sum(stream.items for stream in self.streams.values()),
            snippet=self.root.last,
        )

    def record(self, conversation_id: str, *, live: bool) -> Record:
        """Return the record to store; the fields beside ``row`` are there to be filtered by."""
        info = self.info(conversation_id, live=live)
        value = {
            "archived": info.archived,
            "tags": list(info.tags),
            "directory": info.locations[0].directory if info.locations else "",
            "status": info.status,
            "row": to_json(self),
        }
        return Record(conversation_id, value, info.updated_at)


FILTERS = ("archived", "tags", "directory", "status")


def stored_row(record: Record) -> Row | None:
    """Return the row of a record; None when it is of another version or cannot be read."""
    try:
        row = from_json(record.value.get("row"), Row)
    except Malformed:
        return None
    return row if row.version == ROW_VERSION else None


class RowFold:
    """Folds entries into a row and gathers the documents to be searched.

    ``row`` is changed in place. ``documents`` has the newest text of each by id; whoever stores
    them clears it.
    """

    def __init__(self, conversation_id: str, row: Row | None = None) -> None:
        self.conversation_id = conversation_id
        self.row = row or Row(version=ROW_VERSION)
        self.documents: dict[str, Document] = {}
        self._title = self.row.title

    def apply(self, stream: str, seq: int, entry: Mapping[str, Any]) -> None:
        """Fold one entry; those up to the row's sequence have been folded before."""
        if seq <= self.row.sequence(stream):
            return
        if stream == METADATA_STREAM:
            self.row.metadata_seq = seq
            self.row.metadata = decode_metadata(entry) or self.row.metadata
            return
        fold = self.row.streams.setdefault(stream, StreamRow())
        fold.seq = seq
        fold.active_at = max(fold.active_at, activity_of(entry))
        match entry:
            case {"t": "turn", "id": str()}:
                fold.turns += "startedAt" in entry
                if isinstance(state := entry.get("state"), str):
                    fold.turn = state
            case {"t": "item", "id": str(item_id)}:
                self._item(fold, item_id, entry)
            case _:
                pass
        if ends_block(entry):
            fold.open = {}
            fold.pending = {}

    def finish(self) -> Row:
        """Return the row with a document for its title, if that has changed."""
        if self.row.title != self._title:
            self._title = self.row.title
            self._document("", TITLE_FIELD, self._title)
        return self.row

    def _item(self, fold: StreamRow, item_id: str, entry: Mapping[str, Any]) -> None:
        kind = entry.get("kind", fold.open.get(item_id))
        if not isinstance(kind, str):
            return
        if "kind" in entry and item_id not in fold.open:
            fold.items += 1
        if kind in _MESSAGES:
            fold.open[item_id] = kind
            if (text := message_text(entry)) is not None:
                self._document(item_id, TEXT_FIELD, text)
                _show(fold, item_id, kind, entry, text)
        elif kind in ("approval", "question"):
            fold.open[item_id] = kind
            state = entry.get("state", "pending" if "kind" in entry else None)
            if state == "pending":
                fold.pending[item_id] = kind
            elif state is not None:
                fold.pending.pop(item_id, None)

    def _document(self, name: str, field: str, text: str) -> None:
        key = f"{self.conversation_id}/{name}"
        self.documents[key] = Document(
            id=key, group=self.conversation_id, fields={field: text[:SEARCH_TEXT_CHARS_MAX]}
        )


def _show(fold: StreamRow, item_id: str, kind: str, entry: Mapping[str, Any], text: str) -> None:
    if not fold.first and kind == "user_message":
        fold.first = _begin(text, TITLE_CHARS_MAX)
    at = entry.get("at", fold.last_at if item_id == fold.last_id else None)
    if isinstance(at, int) and at >= fold.last_at and text:
        fold.last_at = at
        fold.last_id = item_id
        fold.last = _begin(text, SNIPPET_CHARS_MAX)


def first_words(entry: Mapping[str, Any]) -> str:
    """Return how a user's message begins; empty for every other entry."""
    if entry.get("t") != "item" or entry.get("kind") != "user_message":
        return ""
    return _begin(message_text(entry) or "", TITLE_CHARS_MAX)


def message_text(entry: Mapping[str, Any]) -> str | None:
    """Return the text of a message as this entry gives it; None when it leaves it as it was."""
    match entry:
        case {"text": str(text)}:
            return text
        case {"content": list(blocks) | tuple(blocks)}:
            return "\n".join(
                block["text"]
                for block in blocks
                if isinstance(block, Mapping) and isinstance(block.get("text"), str)
            )
        case _:
            return None


_TIMES = ("createdAt", "completedAt", "startedAt", "endedAt")


def activity_of(entry: Mapping[str, Any]) -> int:
    """Return the newest time that an entry of a session tells, 0 for none."""
    if entry.get("t") not in ("session", "input", "turn", "step", "item"):
        return 0
    return max((t for name in _TIMES if isinstance(t := entry.get(name), int)), default=0)


def _begin(text: str, length: int) -> str:
    return " ".join(text[: 4 * length].split())[:length]
