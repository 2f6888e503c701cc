"""`SessionLog`: one session's stream, as its session writes and reads it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from vaala.dao.entries import (
    FORMAT_MAJOR,
    FORMAT_MINOR,
    ROOT_STREAM,
    Entry,
    format_entry,
    origin_entry,
    session_entry,
)
from vaala.dao.errors import NewerFormat
from vaala.dao.home import Home
from vaala.dao.item_pages import (
    items_from,
    page_after,
    page_before,
    steps_before,
    turns_before,
)
from vaala.dao.limits import (
    CHECKPOINT_AFTER_BYTES_MIN,
    CHECKPOINT_AFTER_SIZES,
    OPENING_KEPT_ENTRIES,
    PAGE_ITEMS_MAX,
)
from vaala.dao.pages import StepPage, TurnPage, checked_limit
from vaala.dao.state import SessionState
from vaala.dao.walk import Stream, Walk
from vaala_protocol.base import Malformed, encode
from vaala_protocol.items import Item
from vaala_protocol.pages import ItemPage
from vaala_protocol.state import SessionInfo
from vaala_storage.errors import NotFound
from vaala_storage.log import Damage, Stored


class SessionLog:
    """The stream of one session. Its session is the only writer.

    ``state`` is what the stream says up to the last entry that was read; entries that are
    appended are not applied here: the session does that when `append` has returned.
    """

    __slots__ = (
        "_checkpoint_bytes",
        "_damage",
        "_grown_bytes",
        "_home",
        "_last",
        "_preface",
        "_stream_name",
        "session_id",
        "state",
    )

    def __init__(self, home: Home, session_id: str) -> None:
        self._home = home
        self._stream_name = home.stream_of(session_id)
        self._last = 0
        self._preface: tuple[Entry, ...] = ()
        self._grown_bytes = 0
        self._checkpoint_bytes = 0
        self._damage: tuple[Damage, ...] = ()
        self.session_id = session_id
        self.state = SessionState(session_id)

    @property
    def info(self) -> SessionInfo:
        """The session as clients see it, its parent by id."""
        info = self.state.info
        return replace(info, parent=self._home.path) if info.parent == ROOT_STREAM else info

    @property
    def seq(self) -> int:
        """The last sequence that is known of the stream."""
        return self._last

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read when the log was opened or recovered."""
        return self._damage

    @property
    def foreign(self) -> bool:
        """The stream was last written somewhere else; the first append takes it over."""
        return any(entry["t"] == "origin" for entry in self._preface)

    @property
    def read_only(self) -> str | None:
        """Why nothing can be appended, for people; None when it can."""
        return self._newer or self._home.read_only

    @property
    def _newer(self) -> str | None:
        found = self.state.format
        if found is None or found[0] <= FORMAT_MAJOR:
            return None
        return (
            f"this session was written by a newer vaala (format {found[0]}.{found[1]}, this "
            f"one writes {FORMAT_MAJOR}.{FORMAT_MINOR}): upgrade vaala to go on with it"
        )

    @property
    def checkpoint_due(self) -> bool:
        """The stream has grown enough since the last checkpoint; ask between steps."""
        enough = max(CHECKPOINT_AFTER_BYTES_MIN, CHECKPOINT_AFTER_SIZES * self._checkpoint_bytes)
        return self._grown_bytes > enough

    async def append(self, entries: Sequence[Entry]) -> None:
        """Append entries, all or none; they are on disk when this returns.

        Raises the storage errors of `LogStorage.append`; after `StreamBroken` or `Conflict` call
        `recover` before the next append. Raises `NewerFormat` or `ReadOnlyStore` when nothing can
        be written. A cancel leaves the outcome open: `recover` tells it.
        """
        if (reason := self._newer) is not None:
            raise NewerFormat(reason)
        self._home.check_writable()
        if not entries:
            return
        batch = (*self._preface, *entries)
        self._last = await self._home.append(self._stream_name, batch, expected=self._last)
        if self._preface:
            self.state.format = (FORMAT_MAJOR, FORMAT_MINOR)
            self._preface = ()
        for entry in batch:
            self._count(entry)

    async def recover(self) -> SessionState:
        """Bring the stream to a state that can be appended to and return what it now says.

        Entries beyond the last known one are applied to ``state``. When entries are gone that an
        append had reported as written, ``state`` is made anew from the stream. Raises the errors
        of `LogStorage.recover`, and may be called again after them.
        """
        last, damage = await self._home.recover(self._stream_name)
        self._damage += damage
        if last < self._last:
            self.state = SessionState(self.session_id)
            await self.load()
        else:
            await self._apply_from(self._last)
        return self.state

    async def items(
        self, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> ItemPage:
        """Return whole items in order of ``at``.

        With ``after`` the first ones with a higher place, up to ``before`` if that is given too;
        without it the last ones before ``before``, or of all. The cost is that of the page and a
        search by bisection, whatever the stream's length. Raises `BadRequest` for no limit from 1
        to `limits.PAGE_ITEMS_MAX`.
        """
        checked_limit(limit, PAGE_ITEMS_MAX)
        staged = self._home.staged
        try:
            return await self._items(before, after, limit)
        except NotFound:
            if not staged or self._home.staged:
                raise
            # It has moved to disk meanwhile.
            return await self._items(before, after, limit)

    async def _items(self, before: int | None, after: int | None, limit: int) -> ItemPage:
        if after is None:
            return await page_before(self._stream, self.session_id, before, limit)
        return await page_after(self._stream, self.session_id, after, before, limit)

    def history(self, from_at: int = 0) -> AsyncIterator[list[Item]]:
        """Yield all items from a place on, in order of ``at``, in lists of one step or more."""
        return items_from(self._stream, self.session_id, from_at)

    async def turns(self, *, cursor: int | None = None, limit: int = 20) -> TurnPage:
        """Return turns, newest first; the cost grows with what they wrote."""
        return await turns_before(self._stream, cursor, limit)

    async def steps(
        self, *, turn_id: str | None = None, cursor: int | None = None, limit: int = 50
    ) -> StepPage:
        """Return steps, newest first, of all turns or of one."""
        return await steps_before(self._stream, cursor, limit, turn_id)

    async def begin(self, info: SessionInfo) -> None:
        """Write the first entries of a new stream; durable on return. Raises `Conflict`."""
        entries = session_start(info, self._home.origin)
        await self.append(entries)
        for entry in entries:
            self.state.apply(entry)

    async def load(self) -> None:
        """Read the newest checkpoint and what follows it into ``state``, which must be new."""
        start, tail = await self._find_checkpoint()
        self._last = 0
        self._grown_bytes = 0
        for stored in tail:
            self._apply(stored)
        if not tail:
            await self._apply_from(start)
        # Where lines are out of order, storage has the say on where the next one goes.
        self._last = await self._home.log.last(self._home.path, self._stream_name)
        self._preface = tuple(self._due_preface())

    async def _find_checkpoint(self) -> tuple[int, list[Stored]]:
        """Return the sequence before the newest checkpoint that can be read, 0 without one.

        And the entries from there on, or none when they are too many to be kept.
        """
        walk = Walk(self._stream, None, back=True)
        tail: deque[Stored] = deque(maxlen=OPENING_KEPT_ENTRIES)
        read = 0
        start = 0
        while (stored := await walk.next()) is not None:
            tail.appendleft(stored)
            read += 1
            if stored.entry.get("t") == "checkpoint" and self._is_sound(stored.entry):
                start = stored.seq - 1
                break
        return start, list(tail) if read <= OPENING_KEPT_ENTRIES and not walk.damage else []

    def _is_sound(self, entry: Mapping[str, Any]) -> bool:
        try:
            SessionState(self.session_id).apply(entry)
        except Malformed:
            return False
        return True

    async def _apply_from(self, after: int) -> None:
        walk = Walk(self._stream, after)
        while (stored := await walk.next()) is not None:
            self._apply(stored)
        self._damage += tuple(walk.damage)

    def _apply(self, stored: Stored) -> None:
        """Fold one entry; one that cannot be read is a gap, never the end."""
        self._last = stored.seq
        self._count(stored.entry)
        try:
            self.state.apply(stored.entry)
        except Malformed as error:
            self._damage += (Damage(stored.seq, stored.seq, str(error)),)

    def _count(self, entry: Mapping[str, Any]) -> None:
        size = len(encode(entry))
        if entry.get("t") == "checkpoint":
            self._checkpoint_bytes = size
            self._grown_bytes = 0
        else:
            self._grown_bytes += size

    def _due_preface(self) -> list[Entry]:
        """Return what must stand before the first entry that is appended."""
        due: list[Entry] = []
        if self.state.format is None or self.state.format < (FORMAT_MAJOR, FORMAT_MINOR):
            due.append(format_entry())
        if self.state.head.origin != self._home.origin:
            due.append(origin_entry(self._home.origin))
            self.state.apply(due[-1])
        return due

    @property
    def _stream(self) -> Stream:
        return Stream(self._home.log, self._home.path, self._stream_name)


def session_start(info: SessionInfo, origin: str) -> list[Entry]:
    """Return the first entries of a session's stream."""
    return [format_entry(), origin_entry(origin), session_entry(info)]
