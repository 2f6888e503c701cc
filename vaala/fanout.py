"""Fan-out: one publisher, numbered frames, any number of readers that never hold it up.

`Fanout.publish` is synchronous and never waits. Each reader has a queue of its own, bounded in
frames and in characters; frames that can be merged are, while they wait. A reader that falls
behind loses its queue and gets a new snapshot in its place: nothing is dropped in silence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from vaala import limits
from vaala.ring import Published, Ring
from vaala.subscription import Merges, Reading, Subscription
from vaala_protocol.ids import new_id

if TYPE_CHECKING:
    from vaala_protocol.methods.conversation import Position

S = TypeVar("S")
F = TypeVar("F")
E = TypeVar("E")


class Fanout(ABC, Generic[S, F, E]):
    """Numbers events E from 1 in each opening (the epoch) and gives them, as frames F, to readers.

    A frame counts as `limits.FRAME_CHARACTERS` and the text that it holds.
    """

    def __init__(self) -> None:
        self.epoch = new_id()
        self.seq = 0
        self._reason: str | None = None
        self._subscribers: set[Subscription[S, F]] = set()
        self._ring: Ring[F] | None = None
        self._unwatched_since: float | None = None

    @abstractmethod
    def frame(self, event: E) -> F:
        """Return the frame of an event, numbered ``seq`` of ``epoch``."""

    @abstractmethod
    def merge(self, old: F, new: F) -> F | None:
        """Return one frame for two that follow each other, None when they stay apart."""

    @abstractmethod
    def characters(self, frame: F) -> int:
        """Return about how much text a frame holds; what is always short counts as nothing."""

    @property
    def watched(self) -> bool:
        return bool(self._subscribers)

    @property
    def subscribers(self) -> int:
        return len(self._subscribers)

    def publish(self, event: E) -> None:
        """Give an event its number and every reader its frame. Never blocks.

        Without readers, now and lately, it only counts.
        """
        self.seq += 1
        if not self._subscribers and self._ring is None:
            return
        published = self._published(self.frame(event))
        if self._ring is not None:
            self._ring.add(published)
        merges: Merges[F] = {}
        for subscriber in list(self._subscribers):
            subscriber.push(published, merges)

    @contextmanager
    def subscribe(
        self,
        take: Callable[[], S],
        *,
        after: Position | None = None,
        reading: Reading | None = None,
    ) -> Generator[Subscription[S, F]]:
        """Subscribe: ``take`` builds a snapshot synchronously when one is read.

        With ``after`` the frames behind that position come at once, without a snapshot, when all
        of them are still here (``resumed``). After `close` nothing follows the snapshot.
        """
        subscription = Subscription(take, self._merge_published, reading or Reading())
        if (missed := self._missed(after)) is not None:
            subscription.resume(missed)
        if self._reason is not None:
            subscription.close(self._reason)
        elif self._ring is None:
            self._ring = Ring(self.seq)
        self._subscribers.add(subscription)
        try:
            yield subscription
        finally:
            self._subscribers.discard(subscription)
            self._unwatched_since = None
            subscription.leave()

    def close(self, reason: str = "closing") -> None:
        """Let every subscription end, once what it has in its queue was read."""
        self._reason = reason
        for subscriber in list(self._subscribers):
            subscriber.close(reason)

    def tick(self, now: float) -> None:
        """Called now and then: forget the newest frames when nobody has watched for a while."""
        if self._subscribers:
            self._unwatched_since = None
        elif self._unwatched_since is None:
            self._unwatched_since = now
        elif now - self._unwatched_since >= limits.RING_KEPT_S:
            self._ring = None

    def _missed(self, after: Position | None) -> list[Published[F]] | None:
        if after is None or after.epoch != self.epoch or after.seq > self.seq:
            return None
        if after.seq == self.seq:
            return []
        return None if self._ring is None else self._ring.after(after.seq)

    def _published(self, frame: F) -> Published[F]:
        return Published(frame, limits.FRAME_CHARACTERS + self.characters(frame))

    def _merge_published(self, old: Published[F], new: Published[F]) -> Published[F] | None:
        merged = self.merge(old.frame, new.frame)
        return None if merged is None else self._published(merged)
