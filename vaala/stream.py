"""The event stream of a conversation: a snapshot, then every change, in order, numbered.

Fan-out: `EventStream.publish` is synchronous and never waits. Each subscriber has a queue of its
own, bounded in frames and in text; consecutive deltas of one item are merged in it. A subscriber
that falls behind loses its queue and gets a new snapshot in its place: nothing is dropped in
silence, and no actor waits for a reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
import trio

from vaala import limits
from vaala_protocol.content import Content, TextContent
from vaala_protocol.events import (
    CommandOutput,
    Event,
    Frame,
    InputChanged,
    ItemChanged,
    ItemDelta,
)
from vaala_protocol.ids import new_id
from vaala_protocol.items import AssistantMessage, PeerMessage, Reasoning, ToolCall, UserMessage
from vaala_protocol.state import InputInfo, Snapshot, UserInput

Update: TypeAlias = Snapshot | Frame
"""A snapshot replaces all that was known; a frame changes it."""


class Subscription:
    """Iterate to get updates, the first one a snapshot; ends when the conversation closes."""

    def __init__(self, take: Callable[[], Snapshot]) -> None:
        self._take = take
        self._queue: deque[Frame] = deque()
        self._characters = 0
        self._behind = True
        self._wake = trio.Event()
        self._closed = False

    def __aiter__(self) -> AsyncIterator[Update]:
        return self

    async def __anext__(self) -> Update:
        """Return the next update. Cancel: nothing is lost."""
        # Before an update is taken: a cancel at a checkpoint behind it would lose it.
        await trio.lowlevel.checkpoint()
        while True:
            if (update := self.next_nowait()) is not None:
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
        if not self._queue:
            return None
        frame = self._queue.popleft()
        self._characters -= _characters(frame.event)
        return frame

    def push(self, frame: Frame) -> None:
        """Called by the stream: take a frame, merged into the one before it where that goes.

        Dropped when a snapshot is due: it is made when it is read, and holds what was dropped.
        """
        if self._behind:
            return
        self._characters += _characters(frame.event)
        if self._queue and (merged := _merge(self._queue[-1], frame)) is not None:
            self._queue[-1] = merged
        else:
            self._queue.append(frame)
        if (
            len(self._queue) > limits.SUBSCRIPTION_FRAMES_MAX
            or self._characters > limits.SUBSCRIPTION_CHARACTERS_MAX
        ):
            self._queue.clear()
            self._characters = 0
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
        self._closed = False
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
        """Subscribe: ``take`` builds a snapshot synchronously when one is read.

        After `close` there is that snapshot and nothing more.
        """
        subscription = Subscription(take)
        if self._closed:
            subscription.close()
        self._subscribers.add(subscription)
        try:
            yield subscription
        finally:
            self._subscribers.discard(subscription)

    def close(self) -> None:
        """Let every subscription end, once what it has in its queue was read."""
        self._closed = True
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
    if not same or len(first.text) > limits.MERGED_DELTA_CHARACTERS_MAX:
        return None
    event = msgspec.structs.replace(first, text=first.text + second.text)
    return Frame(epoch=old.epoch, first=old.first, seq=new.seq, event=event)


def _characters(event: Event) -> int:
    """Return about how much text an event holds; what is always short counts as nothing."""
    match event:
        case ItemDelta(text=text) | CommandOutput(text=text):
            return len(text)
        case ItemChanged(item=AssistantMessage(text=text) | Reasoning(text=text)):
            return len(text)
        case ItemChanged(item=ToolCall(arguments=arguments, result=result)):
            return len(arguments) + _content_characters(result)
        case ItemChanged(item=UserMessage(content=content) | PeerMessage(content=content)):
            return _content_characters(content)
        case InputChanged(input=InputInfo(source=UserInput(content=content))):
            return _content_characters(content)
        case _:
            return 0


def _content_characters(content: tuple[Content, ...]) -> int:
    return sum(len(block.text) for block in content if isinstance(block, TextContent))
