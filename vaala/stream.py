"""The event stream of a conversation: a snapshot, then every change, in order, numbered.

Fan-out: `EventStream.publish` is synchronous and never waits. Each subscriber has a queue of its
own, bounded in frames; consecutive deltas of one item are merged in it. A subscriber that falls
behind loses its queue and gets a new snapshot in its place: nothing is dropped in silence, and no
actor waits for a reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
import trio

from vaala import limits
from vaala_protocol.events import CommandOutput, Event, Frame, ItemDelta
from vaala_protocol.ids import new_id
from vaala_protocol.state import Snapshot

Update: TypeAlias = Snapshot | Frame
"""A snapshot replaces all that was known; a frame changes it."""


class Subscription:
    """Iterate to get updates, the first one a snapshot; ends when the conversation closes."""

    def __init__(self, take: Callable[[], Snapshot]) -> None:
        self._take = take
        self._queue: deque[Frame] = deque()
        self._behind = True
        self._wake = trio.Event()
        self._closed = False

    def __aiter__(self) -> AsyncIterator[Update]:
        return self

    async def __anext__(self) -> Update:
        """Return the next update. Cancel: nothing is lost."""
        while True:
            if (update := self.next_nowait()) is not None:
                await trio.lowlevel.checkpoint()
                return update
            if self._closed:
                raise StopAsyncIteration
            self._wake = trio.Event()
            await self._wake.wait()

    def next_nowait(self) -> Update | None:
        """Return the next update when there is one."""
        if self._behind:
            self._behind = False
            return self._take()
        return self._queue.popleft() if self._queue else None

    def push(self, frame: Frame) -> None:
        """Called by the stream: take a frame, merged into the one before it where that goes.

        Dropped when a snapshot is due: it is made when it is read, and holds what was dropped.
        """
        if self._behind:
            return
        if self._queue and (merged := _merge(self._queue[-1], frame)) is not None:
            self._queue[-1] = merged
        elif len(self._queue) < limits.SUBSCRIPTION_FRAMES_MAX:
            self._queue.append(frame)
        else:
            self._queue.clear()
            self._behind = True
        self._wake.set()

    def close(self) -> None:
        """Called by the stream: no update follows what is queued."""
        self._closed = True
        self._wake.set()


class EventStream:
    """Numbers events from 1 in each opening of the conversation (the epoch)."""

    def __init__(self) -> None:
        self.epoch = new_id()
        self.seq = 0
        self._subscribers: set[Subscription] = set()

    @property
    def watched(self) -> bool:
        return bool(self._subscribers)

    def publish(self, event: Event) -> None:
        """Give an event its number and every subscriber its frame. Never blocks."""
        self.seq += 1
        if not self._subscribers:
            return
        frame = Frame(epoch=self.epoch, first=self.seq, seq=self.seq, event=event)
        for subscriber in self._subscribers:
            subscriber.push(frame)

    @contextmanager
    def subscribe(self, take: Callable[[], Snapshot]) -> Generator[Subscription]:
        """Subscribe: ``take`` builds a snapshot synchronously when one is read."""
        subscription = Subscription(take)
        self._subscribers.add(subscription)
        try:
            yield subscription
        finally:
            self._subscribers.discard(subscription)

    def close(self) -> None:
        for subscriber in self._subscribers:
            subscriber.close()


def _merge(old: Frame, new: Frame) -> Frame | None:
    """Return one frame for two deltas of the same text, or None."""
    match old.event, new.event:
        case ItemDelta() as first, ItemDelta() as second:
            same = first.item_id == second.item_id and first.field == second.field
        case CommandOutput() as first, CommandOutput() as second:
            same = first.command_id == second.command_id
        case _:
            return None
    if not same or len(first.text) > 65_536:
        return None
    event = msgspec.structs.replace(first, text=first.text + second.text)
    return Frame(epoch=old.epoch, first=old.first, seq=new.seq, event=event)
