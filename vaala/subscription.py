"""`Subscription`: one reader of a stream, with a bounded queue of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

import trio
from msgspec import Struct

from vaala import limits
from vaala.actor import call_outside
from vaala.ring import Published

S = TypeVar("S")
F = TypeVar("F")

Merges = dict[Published[F], Published[F]]
"""What frames became in one publish: readers in step share the merged frame and its encoding."""


class QueueBudget:
    """Bounds what waits in the subscriptions of one client, all together.

    When it is over, the subscription with the most in its queue loses it, and gets a snapshot.
    """

    def __init__(self, characters_max: int = limits.CLIENT_QUEUE_CHARACTERS_MAX) -> None:
        self._characters_max = characters_max
        self._subscriptions: set[Subscription[Any, Any]] = set()
        self.used = 0
        """Characters that wait now."""

    def join(self, subscription: Subscription[Any, Any]) -> None:
        self._subscriptions.add(subscription)

    def leave(self, subscription: Subscription[Any, Any]) -> None:
        self._subscriptions.discard(subscription)

    def grew(self, characters: int) -> None:
        """Called by a subscription whose queue has grown, or shrunk."""
        self.used += characters
        while self.used > self._characters_max:
            max(self._subscriptions, key=lambda one: one.size).lose()


class Reading(Struct, frozen=True):
    """How somebody wants to read."""

    budget: QueueBudget | None = None
    """Shared by the subscriptions of one client."""
    on_ready: Callable[[], None] | None = None
    """Called when there is something to read again, or the end, after a read found nothing; once,
    until the next such read. Synchronous; must neither wait nor raise."""


class Subscription(Generic[S, F]):
    """Iterate to get updates: a snapshot of kind S first, unless it is ``resumed``, then frames F.

    A reader that falls behind loses its queue and gets a snapshot in its place. Iteration ends
    when what is watched has ended; then ``reason`` says why.
    """

    def __init__(
        self,
        take: Callable[[], S],
        merge: Callable[[Published[F], Published[F]], Published[F] | None],
        reading: Reading,
    ) -> None:
        self.resumed = False
        """The first update follows the position that was given: no snapshot comes before it."""
        self.reason: str | None = None
        """Why nothing more comes: ``deleted``, ``closing`` or ``crashed``; None: it goes on."""
        self.size = 0
        """Characters in the queue."""
        self._take = take
        self._merge = merge
        self._reading = reading
        self._queue: deque[Published[F]] = deque()
        self._behind = True
        self._asleep = False
        self._wake = trio.Event()
        if reading.budget is not None:
            reading.budget.join(self)

    @property
    def ended(self) -> bool:
        """All was read, and nothing more comes."""
        return self.reason is not None and not self._behind and not self._queue

    def __aiter__(self) -> AsyncIterator[S | F]:
        return self

    async def __anext__(self) -> S | F:
        """Return the next update. Cancel: nothing is lost."""
        # Before an update is taken: a cancel at a checkpoint behind it would lose it.
        await trio.lowlevel.checkpoint()
        while True:
            if (update := self.next_nowait()) is not None:
                return update
            if self.reason is not None:
                raise StopAsyncIteration
            self._wake = trio.Event()
            await self._wake.wait()

    def next_nowait(self) -> S | F | None:
        """Return the next update when there is one."""
        update = self.next_published_nowait()
        return update.frame if isinstance(update, Published) else update

    def next_published_nowait(self) -> S | Published[F] | None:
        """Return the next update when there is one: a snapshot, or a frame that others share."""
        if self._behind:
            self._behind = False
            return self._take()
        if not self._queue:
            self._asleep = True
            return None
        published = self._queue.popleft()
        self._grow(-published.size)
        return published

    def resume(self, missed: list[Published[F]]) -> None:
        """Called by the stream, before anything is read: go on with ``missed`` and no snapshot."""
        self._behind = False
        for published in missed:
            self.push(published, {})
        self.resumed = not self._behind

    def push(self, published: Published[F], merges: Merges[F]) -> None:
        """Called by the stream: take a frame, merged into the one before it where that goes.

        Dropped when a snapshot is due: it is made when it is read, and holds what was dropped.
        """
        if self._behind:
            return
        grown = published.size
        if self._queue and (merged := self._merged(published, merges)) is not None:
            grown = merged.size - self._queue[-1].size
            self._queue[-1] = merged
        else:
            self._queue.append(published)
        self._grow(grown)
        if (
            len(self._queue) > limits.SUBSCRIPTION_FRAMES_MAX
            or self.size > limits.SUBSCRIPTION_CHARACTERS_MAX
        ):
            self.lose()
        self._tell()

    def lose(self) -> None:
        """Drop the queue; a snapshot is due in its place."""
        self._queue.clear()
        self._behind = True
        self._grow(-self.size)

    def close(self, reason: str) -> None:
        """Called by the stream: no update follows what is queued."""
        self.reason = reason
        self._tell()

    def leave(self) -> None:
        """Called by the stream when the reader goes: nothing waits for it any more."""
        self._queue.clear()
        self._grow(-self.size)
        if self._reading.budget is not None:
            self._reading.budget.leave(self)

    def _merged(self, new: Published[F], merges: Merges[F]) -> Published[F] | None:
        old = self._queue[-1]
        if (merged := merges.get(old)) is None and (merged := self._merge(old, new)) is not None:
            merges[old] = merged
        return merged

    def _grow(self, characters: int) -> None:
        self.size += characters
        if self._reading.budget is not None and characters:
            self._reading.budget.grew(characters)

    def _tell(self) -> None:
        self._wake.set()
        if self._asleep:
            self._asleep = False
            if self._reading.on_ready is not None:
                call_outside(self._reading.on_ready)
