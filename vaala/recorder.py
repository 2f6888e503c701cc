"""`Recorder`: the one writer of a session's stream, and what it could not write yet.

A batch that fails is kept, in order, and goes first at the next attempt: a result is never lost
because the disk was full when it came. Nothing is applied or published before it is durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from vaala.changes import Change
from vaala.dao.session_log import SessionLog
from vaala_protocol.errors import NotDurable
from vaala_storage.errors import Conflict, StorageError, StreamBroken, TooLarge

Batch: TypeAlias = tuple[Change, ...]


class Recorder:
    def __init__(self, log: SessionLog, publish: Callable[[Change], None]) -> None:
        self.log = log
        self._publish = publish
        self._kept: deque[Batch] = deque()

    @property
    def unsaved(self) -> bool:
        """Whether there are batches that wait to be written."""
        return bool(self._kept)

    async def write(self, changes: Sequence[Change], *, keep: bool) -> None:
        """Append what was kept, then ``changes``; apply and publish each that is durable.

        Raises `NotDurable`. With ``keep`` the changes are kept for the next attempt, without it
        they are forgotten: the caller tells whoever asked for them.
        """
        batch = tuple(changes)
        if batch:
            self._kept.append(batch)
        try:
            while self._kept:
                await self._append_first()
        except StorageError as error:
            if not keep and self._kept and self._kept[-1] is batch:
                self._kept.pop()
            raise NotDurable(f"could not save: {error}") from error

    async def _append_first(self) -> None:
        """Append the first kept batch; one that is too large for a line is halved instead."""
        batch = self._kept[0]
        before = self.log.seq
        try:
            await self.log.append([change.entry for change in batch])
        except TooLarge:
            if len(batch) == 1:
                raise
            half = len(batch) // 2
            self._kept.popleft()
            self._kept.extendleft((batch[half:], batch[:half]))
            return
        except (StreamBroken, Conflict):
            await self.log.recover()
            if self.log.seq <= before:
                raise
        else:
            for change in batch:
                change.apply(self.log.state)
        self._kept.popleft()
        for change in batch:
            self._publish(change)
