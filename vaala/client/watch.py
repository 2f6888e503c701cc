"""`Watch`: what a client watches, kept over all connections and shared by its readers here.

The server knows one subscription of a connection for each conversation; each reader has a queue
of its own. A connection that is new goes on behind what is known; only where the server cannot,
or a reader has lost something, a snapshot comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

import trio

from vaala.client import limits
from vaala.client.errors import Disconnected
from vaala.client.link import Link
from vaala.client.reader import Reader
from vaala_protocol.base import Malformed
from vaala_protocol.errors import Overloaded, Refused, Stopping, TimedOut
from vaala_protocol.events import Frame
from vaala_protocol.methods import conversation, runtime
from vaala_protocol.methods.conversation import Position
from vaala_protocol.methods.runtime import RuntimeFrame, RuntimeSnapshot
from vaala_protocol.state import Snapshot

S = TypeVar("S", Snapshot, RuntimeSnapshot)
F = TypeVar("F", Frame, RuntimeFrame)


class Subject(ABC, Generic[S]):
    """What can be watched, in the words of the protocol."""

    @abstractmethod
    async def subscribe(
        self, link: Link, after: Position | None, deliver: Callable[[S | None], None]
    ) -> None:
        """Ask for events; ``deliver`` gets the snapshot, None when the events go on."""

    @abstractmethod
    async def unsubscribe(self, link: Link) -> None: ...


class OneConversation(Subject[Snapshot]):
    def __init__(self, conversation_id: str) -> None:
        self.id = conversation_id

    async def subscribe(
        self, link: Link, after: Position | None, deliver: Callable[[Snapshot | None], None]
    ) -> None:
        params = conversation.ConversationSubscribeParams(conversation_id=self.id, after=after)
        await link.ask(params, lambda result: deliver(result.snapshot))

    async def unsubscribe(self, link: Link) -> None:
        await link.ask(conversation.ConversationUnsubscribeParams(conversation_id=self.id))


class AllConversations(Subject[RuntimeSnapshot]):
    async def subscribe(
        self, link: Link, after: Position | None, deliver: Callable[[RuntimeSnapshot | None], None]
    ) -> None:
        await link.ask(runtime.RuntimeSubscribeParams(), deliver)

    async def unsubscribe(self, link: Link) -> None:
        await link.ask(runtime.RuntimeUnsubscribeParams())


class Watch(Generic[S, F]):
    """One task runs `run` for as long as there are readers."""

    def __init__(self, subject: Subject[S], link: Callable[[], Awaitable[Link]]) -> None:
        """``link`` waits for a connection; it raises `Disconnected` when there will be none."""
        self._subject: Subject[S] = subject
        self._link = link
        self._readers: set[Reader[S, F]] = set()
        self._place: Position | None = None
        """Up to where anything has come."""
        self._stands = False
        """The server has answered the subscription of this connection: events belong to it."""
        self._wake = trio.Event()

    @contextmanager
    def reader(self, *, from_now: bool = False) -> Generator[Reader[S, F]]:
        """Add a reader while the block runs; a snapshot is on its way to it.

        With ``from_now`` no snapshot comes first when the subscription stands already: frames
        follow behind what has come by now.
        """
        behind = self._place if from_now and self._stands else None
        reader = Reader[S, F](self.wake, behind)
        self._readers.add(reader)
        self.wake()
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self.wake()

    def wake(self) -> None:
        """Look what is to be done: a reader came, left or needs a snapshot, a connection ended."""
        self._wake.set()

    def hear_frame(self, frame: F) -> None:
        if not self._stands:
            return
        self._place = Position(epoch=frame.epoch, seq=frame.seq)
        for reader in self._readers:
            reader.take_frame(frame)

    def hear_snapshot(self, snapshot: S) -> None:
        """Take a snapshot that the server sends in the place of events that it dropped."""
        if not self._stands:
            return
        self._place = Position(epoch=snapshot.epoch, seq=snapshot.seq)
        for reader in self._readers:
            reader.take_snapshot(snapshot)

    def hear_end(self, reason: str) -> None:
        """The server has ended the subscription."""
        if self._stands:
            self.close(reason)

    def close(self, reason: str | None = None, failure: Exception | None = None) -> None:
        """There is nothing to watch any more; readers get what they have, then ``failure``."""
        for reader in self._readers:
            reader.close(reason, failure)
        self._readers.clear()
        self.wake()

    async def run(self, over: Callable[[], None]) -> None:
        """Keep the subscription while somebody reads; then call ``over``."""
        failures = 0
        while self._readers:
            try:
                link = await self._link()
            except Disconnected as error:
                self.close(failure=error)
                break
            try:
                await self._keep(link)
                failures = 0
            except Disconnected:
                pass  # this connection has ended; the next one will do
            except (*_PASSING, Malformed, Refused) as error:
                failures += 1
                if not isinstance(error, _PASSING) or failures > limits.SUBSCRIBE_TIMES_MAX:
                    self.close(failure=error)
                await trio.sleep(limits.SUBSCRIBE_PAUSE_S)
        over()

    async def _keep(self, link: Link) -> None:
        """Keep the subscription over one connection, until it ends or nobody reads."""
        self._stands = False
        while self._readers and not link.ended.is_set():
            wanted = any(reader.wants_snapshot for reader in self._readers)
            if wanted or not self._stands:
                self._stands = False
                after = None if wanted else self._place
                await self._subject.subscribe(link, after, self._begin)
            else:
                self._wake = trio.Event()
                await self._wake.wait()
        self._stands = False
        if not link.ended.is_set():
            with suppress(Refused):  # then it was over already
                await self._subject.unsubscribe(link)

    def _begin(self, snapshot: S | None) -> None:
        self._stands = True
        if snapshot is not None:
            self.hear_snapshot(snapshot)


_PASSING = (Overloaded, Stopping, TimedOut)
"""Refusals that another attempt may not meet."""
