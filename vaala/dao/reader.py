"""`Reader`: what can be asked of a store without changing it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from vaala.dao.archive_write import Sink, write_archive
from vaala.dao.building import BUILDING_STREAM
from vaala.dao.conversation_log import ConversationLog
from vaala.dao.copy_source import CopySource
from vaala.dao.entries import FORMAT_MAJOR, METADATA_STREAM, ROOT_STREAM
from vaala.dao.home import Home, Shared
from vaala.dao.index_db import ROWS, IndexDb
from vaala.dao.limits import LIST_PAGE_MAX
from vaala.dao.metadata import Metadata, origin_hash, read_metadata
from vaala.dao.pages import checked_limit
from vaala.dao.row import TITLE_FIELD, first_words, stored_row
from vaala.dao.used import TurnUsed, turns_used
from vaala.dao.walk import Stream
from vaala_protocol.errors import BadRequest, NotFound
from vaala_protocol.pages import (
    ConversationPage,
    ConversationRow,
    ListQuery,
    SearchPage,
    SearchResult,
)
from vaala_storage import errors
from vaala_storage.names import check_name
from vaala_storage.records import Query, Record, Scalar
from vaala_storage.search import Hit

DEFAULT_QUERY = ListQuery()


class Reader:
    """Opens, lists and searches conversations.

    ``read_only``: why nothing may be written through it, None when it may.
    """

    def __init__(
        self, shared: Shared, db: IndexDb, *, read_only: str | None, live: bool = True
    ) -> None:
        self._shared = shared
        self._db = db
        self._read_only = read_only
        self._live = live
        self._open: set[str] = set()

    @property
    def instance(self) -> str:
        """The id of this run of the runtime."""
        return self._shared.instance

    async def open(self, conversation_id: str) -> ConversationLog:
        """Open a conversation; the cost does not depend on its length.

        Raises `NotFound`. One that a newer vaala wrote opens with ``read_only`` telling so.
        """
        home, metadata, last = await self._find(conversation_id)
        if metadata.major > FORMAT_MAJOR:
            home.newer = True
            home.read_only = (
                f"conversation {conversation_id} was written by a newer vaala (format "
                f"{metadata.major}.{metadata.minor}): upgrade vaala to go on with it"
            )
        home.ephemeral = metadata.ephemeral
        if not home.staged:
            await self._look_up(home, last)
        self._open.add(conversation_id)
        return ConversationLog(home, metadata, last, self._open.discard)

    async def list(
        self, query: ListQuery = DEFAULT_QUERY, cursor: str | None = None, limit: int = 50
    ) -> ConversationPage:
        """Return a page of conversations from the index.

        Raises `BadRequest` for a cursor that does not fit or no limit from 1 to `LIST_PAGE_MAX`,
        `StorageError` without an index.
        """
        checked_limit(limit, LIST_PAGE_MAX)
        await self._caught_up()
        try:
            page = await self._db.records.list(
                ROWS, _records_query(query), cursor=cursor, limit=limit
            )
        except ValueError as error:
            raise BadRequest(f"this cursor is not one of this list: {error}") from error
        rows = [shown for record in page.records if (shown := self._shown(record)) is not None]
        return ConversationPage(rows=tuple(rows), cursor=page.cursor, complete=self._is_complete())

    async def search(self, text: str, cursor: str | None = None, limit: int = 20) -> SearchPage:
        """Return the titles and messages that hold every word of ``text``, best first.

        Raises `BadRequest` for a cursor that does not fit or no limit from 1 to `LIST_PAGE_MAX`,
        `StorageError` without an index.
        """
        checked_limit(limit, LIST_PAGE_MAX)
        await self._caught_up()
        try:
            page = await self._db.search.query(text, cursor=cursor, limit=limit)
        except ValueError as error:
            raise BadRequest(f"this cursor is not one of this search: {error}") from error
        groups = list(dict.fromkeys(hit.group for hit in page.hits))
        records = await self._db.records.mget(ROWS, groups)
        results = [
            found for hit in page.hits if (found := self._result(hit, records.get(hit.group)))
        ]
        return SearchPage(results=tuple(results), cursor=page.cursor, complete=self._is_complete())

    async def get(self, conversation_id: str) -> ConversationRow | None:
        """Return a conversation as the list shows it; None: the index has no such row, or fails."""
        try:
            await self._caught_up()
            record = await self._db.records.get(ROWS, conversation_id)
        except errors.StorageError:  # the index is a cache: who needs more opens the conversation
            return None
        return None if record is None else self._shown(record)

    async def rows(self, conversation_ids: Sequence[str]) -> dict[str, ConversationRow]:
        """Return those that the index has, as the list shows them, by id.

        Raises `StorageError` without an index.
        """
        await self._caught_up()
        found: dict[str, ConversationRow] = {}
        for start in range(0, len(conversation_ids), LIST_PAGE_MAX):
            part = conversation_ids[start : start + LIST_PAGE_MAX]
            for key, record in (await self._db.records.mget(ROWS, part)).items():
                if (shown := self._shown(record)) is not None:
                    found[key] = shown
        return found

    async def record(self, conversation_id: str) -> Metadata:
        """Return a conversation's own record; raises `NotFound`."""
        _, metadata, _ = await self._find(conversation_id)
        return metadata

    async def used(
        self, conversation_id: str, since: int | None = None
    ) -> AsyncGenerator[TurnUsed]:
        """Yield the turns of all sessions, the root's first and of each the newest first, that
        run or ended at ``since`` (milliseconds) or later.

        The conversation need not be open; the cost grows with what these turns wrote. Raises
        `NotFound`.
        """
        home, _, _ = await self._find(conversation_id)
        try:
            names = await home.log.streams(home.path)
            ids = [home.session_of(name) for name in names if name not in _NO_SESSIONS]
            for session_id in sorted(ids, key=lambda id: (id != home.path, id)):
                stream = Stream(home.log, home.path, home.stream_of(session_id))
                async with aclosing(turns_used(stream, session_id, since)) as turns:
                    async for one in turns:
                        yield one
        except errors.NotFound as error:  # it was deleted meanwhile, or has just moved to disk
            raise NotFound(f"conversation {conversation_id} is gone") from error

    async def export(self, conversation_id: str, sink: Sink) -> None:
        """Write a conversation as an archive, see `vaala.dao.archive_write`.

        What is appended meanwhile is left out. Raises `NotFound` and what ``sink`` raises.
        """
        source = await self._source(conversation_id)
        await write_archive(source, sink, now=self._shared.clock())

    async def _secure(self, conversation_id: str) -> None:
        """Make durable what is about to be read; nothing for a mere reader."""

    async def _caught_up(self) -> None:
        """Make the index ready to be read; raises `IndexUnavailable` when there is none."""
        self._db.check()
        await self._read_behind()

    async def _read_behind(self) -> None:
        """Bring the index up to date with what was appended; nothing for a mere reader."""

    def _is_complete(self) -> bool:
        return True

    def _shown(self, record: Record) -> ConversationRow | None:
        row = stored_row(record)
        if row is None:
            return None
        live = self._live and record.value.get("status") not in ("idle", "failed")
        return row.shown(record.key, live=live)

    def _result(self, hit: Hit, record: Record | None) -> SearchResult | None:
        shown = None if record is None else self._shown(record)
        if shown is None:
            return None
        item_id = None if hit.field == TITLE_FIELD else hit.id.partition("/")[2]
        return SearchResult(conversation=shown.info, item_id=item_id, snippet=hit.snippet)

    def _home(self, conversation_id: str, *, staged: bool) -> Home:
        origin = origin_hash(self._shared.place, conversation_id)
        home = Home(self._shared, conversation_id, origin=origin, staged=staged)
        home.read_only = self._read_only
        return home

    async def _find(self, conversation_id: str) -> tuple[Home, Metadata, int]:
        """Return where a conversation is, its record and the sequence of that."""
        home = self._home(conversation_id, staged=await self._is_staged(conversation_id))
        try:
            if not home.staged:
                await self._secure(conversation_id)
            names = await home.log.streams(conversation_id)
            if BUILDING_STREAM in names:
                raise errors.NotFound(f"{conversation_id} is still being made")
            return (home, *await self._metadata(home, names))
        except (errors.NotFound, ValueError) as error:  # or a name that storage needs itself
            raise NotFound(f"there is no conversation {conversation_id}") from error

    async def _source(self, conversation_id: str) -> CopySource:
        home, metadata, _ = await self._find(conversation_id)
        title = metadata.title or metadata.made_title or await self._first_words(home)
        return CopySource(home.log, home.blobs, home.path, metadata, title)

    async def _is_staged(self, conversation_id: str) -> bool:
        try:
            check_name(conversation_id)
        except ValueError as error:
            raise NotFound(f"there is no conversation {conversation_id[:80]!r}") from error
        try:
            await self._shared.staged.log.streams(conversation_id)
        except errors.NotFound:
            return False
        return True

    async def _metadata(self, home: Home, names: tuple[str, ...]) -> tuple[Metadata, int]:
        """Return the record; a directory that lost it is taken for one from elsewhere."""
        if METADATA_STREAM not in names:
            return Metadata(), 0
        return await read_metadata(home.log, home.path)

    async def _look_up(self, home: Home, metadata_seq: int) -> None:
        """Take from the row what the metadata does not tell, and see whether it is up to date."""
        row = await self._shared.index.row(home.path)
        if row is None:
            home.first_words = await self._first_words(home)
        else:
            home.updated_at = row.active_at
            home.first_words = row.root.first
            home.indexed_seq = row.sequence(ROOT_STREAM)
        if row is None or row.metadata_seq != metadata_seq:
            self._shared.index.stale(home.path)

    async def _first_words(self, home: Home) -> str:
        try:
            page = await home.log.read(home.path, ROOT_STREAM, limit=FIRST_ENTRIES)
        except errors.NotFound:
            return ""
        return next(filter(None, (first_words(stored.entry) for stored in page.entries)), "")


_NO_SESSIONS = frozenset({METADATA_STREAM, BUILDING_STREAM})

FIRST_ENTRIES = 32
"""The first message is among these: header, input, turn, message."""


def _records_query(query: ListQuery) -> Query:
    where: dict[str, Scalar] = {}
    if query.archived is not None:
        where["archived"] = query.archived
    if query.tag is not None:
        where["tags"] = query.tag
    if query.directory is not None:
        where["directory"] = query.directory
    if query.status is not None:
        where["status"] = query.status
    return Query(
        order="updated_at" if query.order == "updated" else "key",
        reverse=query.newest_first,
        where=where,
    )
