"""The metadata stream: the conversation's own record, and where it was last written.

Its entries:

    format         {major, minor}
    conversation   the record, always whole, so that the newest one is all there is to read

The ``origin`` of the record (and of each session's stream) is a hash over the data directory and
the conversation's name. In a directory that was copied or imported it does not match: then nothing
that was allowed there holds here, and the work location needs to be confirmed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from vaala.dao.entries import FORMAT_MAJOR, FORMAT_MINOR, METADATA_STREAM, Entry
from vaala.dao.limits import METADATA_TAIL_ENTRIES
from vaala_protocol.base import Malformed, Value, from_json, to_json
from vaala_protocol.settings import Usage
from vaala_protocol.state import ConversationInfo, Location
from vaala_storage.log import LogStorage


class Metadata(Value, frozen=True, kw_only=True):
    """The record as it is stored: without what other streams tell (status, last change)."""

    created_at: int = 0
    title: str = ""
    """As given by a person; empty: one that was made."""
    made_title: str = ""
    """As a model made it; empty: how the first message begins."""
    title_model: str = ""
    """The model that was asked for it."""
    title_usage: Usage = Usage()
    titled_at: int = 0
    """When that was done; what came along with a copy is older than the copy."""
    locations: tuple[Location, ...] = ()
    tags: tuple[str, ...] = ()
    archived: bool = False
    fork_parent: str | None = None
    ephemeral: bool = False
    origin: str = ""
    major: int = FORMAT_MAJOR
    minor: int = FORMAT_MINOR

    def entry(self) -> Entry:
        own = {"major": self.major, "minor": self.minor}
        return {"t": "conversation", **to_json(self), **own}

    def info(
        self, conversation_id: str, *, title: str = "", updated_at: int = 0
    ) -> ConversationInfo:
        """Return what clients see; ``title`` stands in when none was given."""
        return ConversationInfo(
            id=conversation_id,
            created_at=self.created_at,
            updated_at=max(updated_at, self.created_at),
            title=self.title or self.made_title or title,
            locations=self.locations,
            tags=self.tags,
            archived=self.archived,
            fork_parent=self.fork_parent,
            ephemeral=self.ephemeral,
        )


def metadata_of(info: ConversationInfo, origin: str) -> Metadata:
    return Metadata(
        created_at=info.created_at,
        title=info.title,
        locations=info.locations,
        tags=info.tags,
        archived=info.archived,
        fork_parent=info.fork_parent,
        ephemeral=info.ephemeral,
        origin=origin,
    )


def decode_metadata(entry: Mapping[str, Any]) -> Metadata | None:
    """Return the record of an entry; None for other entries and for what cannot be read."""
    if entry.get("t") != "conversation":
        return None
    try:
        return from_json({**entry}, Metadata)
    except Malformed:
        return None


def origin_hash(data_dir_id: str, conversation_id: str) -> str:
    """Return the name of a place that tells nothing about it."""
    return hashlib.sha256(f"{data_dir_id}/{conversation_id}".encode()).hexdigest()[:32]


async def read_metadata(log: LogStorage, path: str) -> tuple[Metadata, int]:
    """Return the newest record and the stream's last sequence.

    A stream without a readable record gives an empty one: the conversation stays usable, as one
    from elsewhere. Raises `vaala_storage.errors.NotFound` when there is no such path.
    """
    last: int | None = None
    before: int | None = None
    while True:
        page = await log.read(
            path, METADATA_STREAM, before=before, limit=METADATA_TAIL_ENTRIES, reverse=True
        )
        for stored in page.entries:
            last = stored.seq if last is None else last
            found = decode_metadata(stored.entry)
            if found is not None:
                return found, last
        if not page.more or not page.entries:
            return Metadata(), last or 0
        before = page.entries[-1].seq
