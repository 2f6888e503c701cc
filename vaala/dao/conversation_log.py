"""`ConversationLog`: one open conversation, as its actor writes and reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from vaala.dao.blob_access import Blobs
from vaala.dao.entries import (
    FORMAT_MAJOR,
    FORMAT_MINOR,
    METADATA_STREAM,
    ROOT_STREAM,
    Entry,
    format_entry,
)
from vaala.dao.home import Home
from vaala.dao.metadata import Metadata, read_metadata
from vaala.dao.session_log import SessionLog
from vaala_protocol.errors import NotFound
from vaala_protocol.settings import Usage
from vaala_protocol.state import ConversationInfo, Location, SessionInfo
from vaala_storage import errors


class ConversationLog:
    """Made by a store's ``create`` and ``open``. Its actor is the only writer of its metadata."""

    __slots__ = ("_closed", "_home", "_last", "_metadata", "_on_close", "_unsure", "blobs", "id")

    def __init__(
        self, home: Home, metadata: Metadata, last: int, on_close: Callable[[str], None]
    ) -> None:
        self.id = home.path
        self.blobs = Blobs(home)
        self._home = home
        self._metadata = metadata
        self._last = last
        self._on_close = on_close
        self._unsure = False
        self._closed = False

    @property
    def record(self) -> ConversationInfo:
        """The conversation as its metadata tells; its status is known to its actor alone."""
        return self._metadata.info(
            self.id, title=self._home.first_words, updated_at=self._home.updated_at
        )

    @property
    def staged(self) -> bool:
        """Nothing of it is on disk yet."""
        return self._home.staged

    @property
    def foreign(self) -> bool:
        """The directory was copied, imported or last written somewhere else.

        Its sessions open without what was allowed and waited there; its work location needs to be
        confirmed with `adopt`.
        """
        return self._metadata.origin != self._home.origin

    @property
    def read_only(self) -> str | None:
        """Why nothing can be written, for people; None when it can."""
        return self._home.read_only

    async def update(
        self,
        *,
        title: str | None = None,
        locations: tuple[Location, ...] | None = None,
        tags: tuple[str, ...] | None = None,
        archived: bool | None = None,
    ) -> ConversationInfo:
        """Change what is given; durable on return, unless the conversation is staged.

        Raises the storage errors of `LogStorage.append` with the record unchanged; the next
        update finds out first what the stream says.
        """
        given = {"title": title, "locations": locations, "tags": tags, "archived": archived}
        return await self._write({k: v for k, v in given.items() if v is not None})

    @property
    def has_given_title(self) -> bool:
        """A person gave it a title."""
        return self._metadata.title != ""

    async def titled(self, title: str, model: str, usage: Usage, at: int) -> ConversationInfo:
        """Note the title that a model made, "" for none, and what it used; raises as `update`."""
        return await self._write(
            {"made_title": title, "title_model": model, "title_usage": usage, "titled_at": at}
        )

    async def adopt(self, locations: tuple[Location, ...]) -> ConversationInfo:
        """Make a foreign conversation one of this place, with these work locations."""
        return await self._write({"locations": locations, "origin": self._home.origin})

    async def session_ids(self) -> tuple[str, ...]:
        """Return the ids of the sessions, the root's first."""
        names = await self._home.log.streams(self.id)
        ids = [self._home.session_of(name) for name in names if name != METADATA_STREAM]
        return tuple(sorted(ids, key=lambda name: (name != self.id, name)))

    async def open_session(self, session_id: str) -> SessionLog:
        """Read a session's newest checkpoint and what follows it; raises `NotFound`."""
        session = SessionLog(self._home, session_id)
        try:
            if self._home.stream_of(session_id) == METADATA_STREAM:
                raise errors.NotFound("the metadata is no session")
            await session.load()
        except (errors.NotFound, ValueError) as error:
            raise NotFound(f"conversation {self.id} has no session {session_id[:80]!r}") from error
        self._home.compare_index(self._home.stream_of(session_id), session.seq)
        return session

    async def create_session(self, info: SessionInfo) -> SessionLog:
        """Make the stream of a child session with its header; durable on return.

        A parent that is the root session is written by its stream's name: no entry holds the id
        of its conversation, so that a copied directory is whole.
        """
        session = SessionLog(self._home, info.id)
        if info.parent == self.id:
            info = msgspec.structs.replace(info, parent=ROOT_STREAM)
        await session.begin(info)
        return session

    async def close(self) -> None:
        """Let go of the conversation; an empty staged one is gone. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self._home.close()
        self._on_close(self.id)

    async def _write(self, fields: dict[str, Any]) -> ConversationInfo:
        self._home.check_writable()
        if self._unsure:
            await self._find_out()
        new = msgspec.structs.replace(self._metadata, **fields)
        if new == self._metadata:
            return self.record
        preface: list[Entry] = []
        if (self._metadata.major, self._metadata.minor) < (FORMAT_MAJOR, FORMAT_MINOR):
            preface.append(format_entry())
            new = msgspec.structs.replace(new, major=FORMAT_MAJOR, minor=FORMAT_MINOR)
        try:
            self._last = await self._home.append(
                METADATA_STREAM, [*preface, new.entry()], expected=self._last
            )
        except (errors.StreamBroken, errors.Conflict):
            self._unsure = True
            raise
        self._metadata = new
        return self.record

    async def _find_out(self) -> None:
        await self._home.recover(METADATA_STREAM)
        self._metadata, self._last = await read_metadata(self._home.log, self.id)
        self._unsure = False


def metadata_start(metadata: Metadata) -> list[Entry]:
    """Return the first entries of a metadata stream."""
    return [format_entry(), metadata.entry()]
