"""`Home`: where one conversation's streams and blobs are, and the way into them.

A new conversation lives in the shared in-memory store; the first append to its root session moves
it to disk with a single `create` that holds that append. So an empty one leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import trio
from msgspec import Struct

from vaala.dao.entries import METADATA_STREAM, ROOT_STREAM, Entry
from vaala.dao.errors import NewerFormat, ReadOnlyStore
from vaala.dao.row import Row, activity_of, first_words
from vaala_storage.blobs import BlobStorage
from vaala_storage.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    StorageFailed,
    StreamBroken,
)
from vaala_storage.log import Damage, LogStorage
from vaala_storage.staged import StagedStorage, hand_over


class IndexFeed(Protocol):
    """What a conversation tells the index. Nothing here fails an append."""

    async def mark_open(self, conversation_id: str) -> None:
        """Note, before the first append, that this run of the runtime writes the conversation."""

    def note(self, conversation_id: str, stream: str, first: int, entries: Sequence[Entry]) -> None:
        """Entries were appended, ``first`` is the sequence of the first."""

    def stale(self, conversation_id: str) -> None:
        """The row may be behind the streams: bring it up to date from them."""

    def unsettled(self, conversation_id: str) -> None:
        """An append has no known outcome: its mark stays, so that the next start looks."""

    def closed(self, conversation_id: str) -> None:
        """The conversation was closed cleanly: bring its row up to date, then clear its mark."""

    async def row(self, conversation_id: str) -> Row | None:
        """Return the row as it is written, None when there is none or it cannot be read."""


class Shared(Struct, frozen=True):
    """What all conversations of a store use."""

    log: LogStorage
    blobs: BlobStorage
    staged: StagedStorage
    """Where new conversations wait for their first message."""
    index: IndexFeed
    place: str
    """The id of the data directory."""
    clock: Callable[[], int]
    """Milliseconds since the epoch."""
    instance: str
    """The id of this run of the runtime."""


class Home:
    """One conversation's place in storage; shared by its metadata and its sessions."""

    __slots__ = (
        "_lock",
        "_marked",
        "_shared",
        "ephemeral",
        "first_words",
        "indexed_seq",
        "newer",
        "origin",
        "path",
        "read_only",
        "staged",
        "updated_at",
    )

    def __init__(self, shared: Shared, path: str, *, origin: str, staged: bool) -> None:
        self._shared = shared
        self._lock = trio.Lock()
        self._marked = False
        self.path = path
        self.origin = origin
        self.staged = staged
        self.ephemeral = False
        self.read_only: str | None = None
        """Why nothing may be written, for people."""
        self.newer = False
        """And that is because a newer version has written it."""
        self.updated_at = 0
        self.indexed_seq: int | None = None
        """How far the index had come in the root session when the conversation was opened."""
        self.first_words = ""
        """How the first message begins: the title until a person gives one."""

    @property
    def log(self) -> LogStorage:
        return self._shared.staged.log if self.staged else self._shared.log

    @property
    def blobs(self) -> BlobStorage:
        return self._shared.staged.blobs if self.staged else self._shared.blobs

    def stream_of(self, session_id: str) -> str:
        return ROOT_STREAM if session_id == self.path else session_id

    def session_of(self, stream: str) -> str:
        return self.path if stream == ROOT_STREAM else stream

    def check_writable(self) -> None:
        """Raise `NewerFormat` or `ReadOnlyStore` when nothing may be written."""
        if self.read_only is not None:
            raise NewerFormat(self.read_only) if self.newer else ReadOnlyStore(self.read_only)

    async def append(self, stream: str, entries: Sequence[Entry], *, expected: int) -> int:
        """Append to a stream of the conversation and return its last sequence.

        Durable on return, unless the conversation is staged and the stream is not the root's.
        Raises what `LogStorage.append` raises.
        """
        try:
            if self.staged:
                async with self._lock:
                    last = await self._append_staged(stream, entries, expected)
            else:
                await self._mark()
                last = await self.log.append(self.path, stream, entries, expected=expected)
        except (StreamBroken, trio.Cancelled):
            self._shared.index.unsettled(self.path)
            raise
        self._note(stream, expected + 1, entries)
        return last

    async def recover(self, stream: str) -> tuple[int, tuple[Damage, ...]]:
        """Recover a stream; a conversation whose move to disk had no clear end is settled first."""
        async with self._lock:
            if self.staged and await self._is_on_disk():
                await self._drop_stage()
                self._left_stage()
        if self.staged:
            return await self.log.last(self.path, stream), ()
        last, damage = await self.log.recover(self.path, stream)
        self._shared.index.stale(self.path)
        return last, damage

    async def put_blob(self, key: str, data: bytes) -> None:
        """Store a blob where the conversation is, also while it moves to disk."""
        if self.staged:
            async with self._lock:
                await self.blobs.put(self.path, key, data)
        else:
            await self.blobs.put(self.path, key, data)

    def compare_index(self, stream: str, seq: int) -> None:
        """Tell the index when it is behind, or ahead of, the root stream that was just read."""
        if stream == ROOT_STREAM and self.indexed_seq not in (None, seq):
            self._shared.index.stale(self.path)
        self.indexed_seq = None

    async def close(self) -> None:
        """Let go of what storage keeps for the path; an empty staged conversation is gone."""
        if not self.staged:
            if self._marked:
                self._shared.index.closed(self.path)
            await self._shared.log.release(self.path)
        elif not self.ephemeral:
            await self._drop_stage()

    async def _append_staged(self, stream: str, entries: Sequence[Entry], expected: int) -> int:
        if not self.staged or stream != ROOT_STREAM or self.ephemeral:
            return await self.log.append(self.path, stream, entries, expected=expected)
        last = await self.log.last(self.path, stream)
        if last != expected:
            raise Conflict(self.path, stream, expected=expected, last=last)
        await self._mark()
        try:
            await hand_over(
                self._shared.staged,
                self.path,
                self._shared.log,
                self._shared.blobs,
                adding={ROOT_STREAM: entries},
            )
        except (StorageFailed, AlreadyExists) as error:
            # It may be there, now or since an earlier attempt: `recover` finds out.
            raise StreamBroken(f"{self.path}: not known whether it was made: {error}") from error
        self._left_stage()
        return expected + len(entries)

    async def _is_on_disk(self) -> bool:
        try:
            return await self._shared.log.last(self.path, METADATA_STREAM) > 0
        except NotFound:
            return False

    def _left_stage(self) -> None:
        self.staged = False
        self._shared.index.stale(self.path)

    async def _drop_stage(self) -> None:
        await self._shared.staged.log.delete_path(self.path)
        await self._shared.staged.blobs.delete_path(self.path)

    async def _mark(self) -> None:
        if not self._marked:
            await self._shared.index.mark_open(self.path)
            self._marked = True

    def _note(self, stream: str, first: int, entries: Sequence[Entry]) -> None:
        self.updated_at = max(self.updated_at, *(activity_of(entry) for entry in entries), 0)
        if not self.first_words and stream == ROOT_STREAM:
            self.first_words = next(filter(None, map(first_words, entries)), "")
        if not self.staged:
            self._shared.index.note(self.path, stream, first, entries)
