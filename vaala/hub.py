"""`RuntimeHub`: what goes on in all conversations, for whoever watches the runtime as a whole.

Rows are kept only while somebody watches: the newest ones, and each that changes. A conversation
that changes is looked at once in `limits.ROWS_PERIOD_S`, whatever happens in it, and its newest
row wins; nothing is told when the row is as it was. A row that cannot be read is looked at again.
Decisions and the configuration are told at once.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from vaala import limits
from vaala.changes import replace
from vaala.dao.store import Reader
from vaala.inbox import Inbox
from vaala.subscription import QueueBudget, Reading
from vaala_protocol.errors import Unreadable
from vaala_protocol.pages import ConversationRow
from vaala_protocol.state import ConversationInfo
from vaala_storage.errors import StorageError

if TYPE_CHECKING:
    from vaala.hub_stream import HubStream, RuntimeSubscription
    from vaala_protocol.methods.runtime import (
        ConfigProblem,
        PendingDecision,
        RuntimeEvent,
        RuntimeSnapshot,
    )

log = logging.getLogger(__name__)


class RuntimeHub:
    """``live`` returns what an open conversation says of itself, None for one that is not open."""

    def __init__(self, store: Reader, live: Callable[[str], ConversationInfo | None]) -> None:
        self.inbox = Inbox(self)
        self._store = store
        self._live = live
        self._stream: HubStream | None = None
        self._rows: dict[str, ConversationRow] | None = None
        self._loading = trio.Lock()
        self._unwatched_since: float | None = None
        self._changed: set[str] = set()
        self._looked_at: set[str] = set()
        """Conversations whose rows are being read right now."""
        self._removed: set[str] = set()
        """Those deleted while the rows were being loaded."""
        self._wake = trio.Event()
        self._generation = 0
        self._problems: tuple[ConfigProblem, ...] = ()

    @property
    def subscribers(self) -> int:
        return 0 if self._stream is None else self._stream.subscribers

    @asynccontextmanager
    async def subscribe(
        self, *, budget: QueueBudget | None = None, on_ready: Callable[[], None] | None = None
    ) -> AsyncGenerator[RuntimeSubscription]:
        """Watch everything: a `RuntimeSnapshot` first, then each `RuntimeFrame`.

        An archived conversation comes as a changed row once, and is not in snapshots. Raises
        `Unreadable` without an index.
        """
        await self._load()
        reading = Reading(budget, on_ready)
        with self._open_stream().subscribe(self.snapshot, reading=reading) as subscription:
            self._unwatched_since = None
            yield subscription

    def conversation_changed(self, conversation_id: str) -> None:
        """Something of a conversation was written down, or its status is another. Cheap."""
        if self._rows is not None or self._loading.locked():
            self._changed.add(conversation_id)
            self._wake.set()

    def conversation_removed(self, conversation_id: str) -> None:
        """A conversation was deleted."""
        from vaala_protocol.methods.runtime import RowRemoved

        self.inbox.clear(conversation_id)
        self._changed.discard(conversation_id)
        self._looked_at.discard(conversation_id)
        if self._loading.locked():
            self._removed.add(conversation_id)
        if self._rows is not None:
            self._rows.pop(conversation_id, None)
        self._publish(RowRemoved(conversation_id=conversation_id))

    def config_changed(self, generation: int, problems: Sequence[ConfigProblem] = ()) -> None:
        """A configuration was loaded; with problems: it was not, and the one before stays."""
        from vaala_protocol.methods.runtime import ConfigChanged

        self._generation = generation
        self._problems = tuple(problems)
        self._publish(ConfigChanged(generation=generation, problems=self._problems))

    def decision_pending(self, pending: PendingDecision) -> None:
        """Called by the inbox."""
        from vaala_protocol.methods.runtime import DecisionPending

        self._publish(DecisionPending(pending=pending))

    def decision_settled(self, conversation_id: str, decision_id: str) -> None:
        """Called by the inbox."""
        from vaala_protocol.methods.runtime import DecisionSettled

        event = DecisionSettled(conversation_id=conversation_id, decision_id=decision_id)
        self._publish(event)

    def snapshot(self) -> RuntimeSnapshot:
        """Return the runtime at this moment, built from memory."""
        from vaala_protocol.methods.runtime import RuntimeSnapshot

        stream = self._open_stream()
        rows = sorted((self._rows or {}).values(), key=_recency, reverse=True)
        return RuntimeSnapshot(
            epoch=stream.epoch,
            seq=stream.seq,
            conversations=tuple(rows[: limits.ROWS_MAX]),
            pending=self.inbox.pending,
            config_generation=self._generation,
            config_problems=self._problems,
        )

    async def run(self) -> None:
        """Tell of rows that changed, once in a while, until cancelled."""
        pause = limits.ROWS_PERIOD_S
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            if await self._refreshed():
                pause = limits.ROWS_PERIOD_S
            else:
                self._wake.set()
                pause = min(2 * pause, limits.ROWS_RETRY_MAX_S)
            await trio.sleep(pause)

    async def _refreshed(self) -> bool:
        """Tell of the rows that changed; False: they are still to be looked at."""
        try:
            await self._refresh()
        except StorageError as error:
            log.warning("%d rows of the list are behind: %s", len(self._looked_at), error)
        except Exception:
            log.exception("rows of conversations could not be told")
        else:
            return True
        self._changed |= self._looked_at
        return False

    def tick(self, now: float) -> None:
        """Called now and then: forget the rows when nobody has watched for a while."""
        if self.subscribers or self._loading.locked():
            self._unwatched_since = None
        elif self._unwatched_since is None:
            self._unwatched_since = now
        elif now - self._unwatched_since >= limits.RING_KEPT_S:
            self._rows = None
            self._stream = None
            self._changed.clear()

    def close(self, reason: str = "closing") -> None:
        """Let every subscription end."""
        if self._stream is not None:
            self._stream.close(reason)

    def _open_stream(self) -> HubStream:
        if self._stream is None:
            from vaala.hub_stream import HubStream

            self._stream = HubStream()
        return self._stream

    def _publish(self, event: RuntimeEvent) -> None:
        if self._stream is not None:
            self._stream.publish(event)

    async def _load(self) -> None:
        """Read the newest rows; what changes meanwhile is looked at again."""
        async with self._loading:
            if self._rows is not None:
                return
            self._removed.clear()
            try:
                page = await self._store.list(limit=limits.ROWS_MAX)
            except StorageError as error:
                raise Unreadable(f"the list of conversations could not be read: {error}") from error
            there = (row for row in page.rows if row.id not in self._removed)
            self._rows = {row.id: self._now(row) for row in there}
            self._wake.set()

    async def _refresh(self) -> None:
        if self._rows is None:
            return
        self._looked_at, self._changed = self._changed, set()
        stored = await self._store.rows(sorted(self._looked_at))
        for conversation_id in sorted(self._looked_at & stored.keys()):
            self._tell(self._now(stored[conversation_id]))

    def _tell(self, row: ConversationRow) -> None:
        from vaala_protocol.methods.runtime import RowChanged

        rows = self._rows
        if rows is None or rows.get(row.id) == row:
            return
        rows[row.id] = row
        if row.info.archived:
            del rows[row.id]
        elif len(rows) > 2 * limits.ROWS_MAX:
            newest = sorted(rows.values(), key=_recency, reverse=True)[: limits.ROWS_MAX]
            self._rows = {kept.id: kept for kept in newest}
        self._publish(RowChanged(row=row))

    def _now(self, row: ConversationRow) -> ConversationRow:
        """Return a row with what the open conversation says of itself: the index may be behind."""
        live = self._live(row.id)
        return row if live is None else replace(row, info=live)


def _recency(row: ConversationRow) -> tuple[int, str]:
    return row.info.updated_at, row.id
