"""`Recorder`: the one writer of a session's stream, and what it could not write yet.

A batch that fails is kept, in order, and goes first at the next attempt: a result is never lost
because the disk was full when it came. Nothing is applied or published before it is durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

import trio
from msgspec import Struct

from vaala.changes import Change
from vaala.dao.session_log import SessionLog
from vaala.observer import Observer
from vaala_protocol.errors import BadRequest, NotDurable
from vaala_storage.errors import StorageError, StorageFull, TooLarge

Batch: TypeAlias = tuple[Change, ...]


class Unwritable(RuntimeError):
    """A kept change that no line of a log can hold: a bug, for texts are bounded where they come.

    It ends the actor: everything behind it would wait for ever.
    """


class _Doubt(Struct, frozen=True):
    """A batch that may or may not be in the stream, which ended at ``before``."""

    batch: Batch
    before: int


class Recorder:
    def __init__(
        self, log: SessionLog, publish: Callable[[Change], None], observer: Observer
    ) -> None:
        self.log = log
        self._observer = observer
        self._publish = publish
        self._kept: deque[Batch] = deque()
        self._doubt: _Doubt | None = None

    @property
    def unsaved(self) -> bool:
        """Whether there are batches that wait to be written."""
        return bool(self._kept)

    async def write(self, changes: Sequence[Change], *, keep: bool) -> None:
        """Append what was kept, then ``changes``; apply and publish each that is durable.

        Before either it finds out what became of an append whose outcome was open: nothing is
        open any more when this returns.

        Raises `NotDurable`. With ``keep`` the changes are kept for the next attempt, and may be
        written in several appends when one cannot hold them. Without it they are one append or
        nothing, and forgotten when they fail: the caller tells whoever asked for them. Then also
        raises `BadRequest` for what JSON cannot hold.

        When the device failed and cannot be read either, the outcome of the last append stays
        open, and everything else waits for it. Cancel: as when the device failed.
        """
        batch = tuple(changes)
        if keep and batch:
            self._kept.append(batch)
        try:
            await self._find_out()
            while self._kept:
                await self._append_kept()
            if batch and not keep:
                await self._append_asked(batch)
        except StorageError as error:
            raise NotDurable(f"could not save: {error}") from error

    async def _append_kept(self) -> None:
        """Append the first kept batch; one that is too large for a line is halved instead."""
        batch = self._kept[0]
        try:
            await self._append(batch)
        except TooLarge as error:
            if len(batch) == 1:
                raise Unwritable(f"{batch[0].event!r:.200}: {error}") from error
            half = len(batch) // 2
            self._kept.popleft()
            self._kept.extendleft((batch[half:], batch[:half]))
        else:
            self._kept.popleft()
            self._tell(batch)

    async def _append_asked(self, batch: Batch) -> None:
        try:
            await self._append(batch)
        except (TypeError, ValueError) as error:
            raise BadRequest(f"it cannot be stored as JSON: {error}") from error
        self._tell(batch)

    async def _append(self, batch: Batch) -> None:
        """Append a batch and apply it."""
        doubt = _Doubt(batch, self.log.seq)
        try:
            with self._observer.append(self.log.session_id, len(batch)):
                await self.log.append([change.entry for change in batch])
        except (StorageFull, TooLarge):
            raise
        except StorageError:
            self._doubt = doubt
            if not await self._stands(doubt):
                raise
        except trio.Cancelled:
            self._doubt = doubt
            raise
        else:
            for change in batch:
                change.apply(self.log.state)

    async def _find_out(self) -> None:
        """Settle what is open; a batch that turns out to stand is no longer kept."""
        doubt = self._doubt
        if doubt is not None and await self._stands(doubt):
            if self._kept and self._kept[0] is doubt.batch:
                self._kept.popleft()
            self._tell(doubt.batch)

    async def _stands(self, doubt: _Doubt) -> bool:
        """Tell whether a batch is in the stream; if so, it is applied when this returns."""
        await self.log.recover()
        self._doubt = None
        return self.log.seq >= doubt.before + len(doubt.batch)

    def _tell(self, batch: Batch) -> None:
        for change in batch:
            self._publish(change)
