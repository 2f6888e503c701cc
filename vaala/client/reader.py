"""`Reader`: one reader of a watched conversation or of the runtime, with a queue of its own.

The updates that it yields are whole: a snapshot, then every frame once and in order, until
something was lost on the way. Then a new snapshot follows in the place of what is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import trio

from vaala.client import limits
from vaala.event_size import event_characters
from vaala_protocol.errors import NotFound
from vaala_protocol.events import Frame
from vaala_protocol.methods.conversation import Position
from vaala_protocol.methods.runtime import RuntimeFrame, RuntimeSnapshot
from vaala_protocol.state import Snapshot

S = TypeVar("S", Snapshot, RuntimeSnapshot)
F = TypeVar("F", Frame, RuntimeFrame)


class Reader(Generic[S, F]):
    """Iterate to get updates; ends when the conversation is not watched any more, and then
    ``reason`` says why.

    Bounded: whoever reads too slowly loses what waits, and gets a snapshot instead.
    """

    def __init__(self, wake: Callable[[], None], behind: Position | None = None) -> None:
        """``wake`` is called when a snapshot is due; ``behind`` is where the first frame follows,
        None: a snapshot comes first."""
        self.reason: str | None = None
        """Why nothing more comes, as the server says: ``deleted``, ``closing`` or ``crashed``."""
        self._call = wake
        self._queue: deque[tuple[S | F, int]] = deque()
        """Updates with the characters in them."""
        self._characters = 0
        self._place = behind
        self._failure: Exception | None = None
        self._closed = False
        self._wake = trio.Event()
        self.wants_snapshot = behind is None
        """It needs one, and has read all that it has."""

    def __len__(self) -> int:
        """Return how many updates wait."""
        return len(self._queue)

    def __bool__(self) -> bool:
        return True

    def __aiter__(self) -> AsyncIterator[S | F]:
        return self

    async def __anext__(self) -> S | F:
        """Return the next update. Raises `Disconnected` once the server was given up, and
        `Refused` kinds when the conversation cannot be watched any more. Cancel: nothing is lost.

        An update that waits is returned without giving way to other tasks: while these do not run
        nothing is added, so that ends with `limits.SUBSCRIPTION_UPDATES_MAX`.
        """
        # Before an update is taken: a cancel at a checkpoint behind it would lose it.
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            if (update := self.next_nowait()) is not None:
                return update
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise StopAsyncIteration
            self._wake = trio.Event()
            await self._wake.wait()

    def next_nowait(self) -> S | F | None:
        """Return the next update when there is one."""
        if not self._queue:
            if self._place is None and not self.wants_snapshot:
                self.wants_snapshot = True
                self._call()
            return None
        update, characters = self._queue.popleft()
        self._characters -= characters
        return update

    async def ready(self) -> None:
        """Wait until updates come; raises what prevents that, `NotFound` when what an earlier
        reader has watched ended just now. Cancel: nothing is lost."""
        while self._place is None and not self._queue and not self._closed:
            self._wake = trio.Event()
            await self._wake.wait()
        if self._closed and not self._queue:
            raise self._failure or NotFound(f"it cannot be watched any more: {self.reason}")

    def take_snapshot(self, snapshot: S) -> None:
        """Take a snapshot, unless all that it tells is known."""
        place = Position(epoch=snapshot.epoch, seq=snapshot.seq)
        if place == self._place:
            return
        self.wants_snapshot = False
        self._queue.clear()
        self._characters = 0
        self._queue.append((snapshot, 0))
        self._place = place
        self._wake.set()

    def take_frame(self, frame: F) -> None:
        """Take the next frame; what is known is dropped, and what does not follow is a loss."""
        if self._place is None or frame.epoch != self._place.epoch:
            self._lose()
            return
        if frame.seq <= self._place.seq:
            return
        if frame.first != self._place.seq + 1:
            self._lose()
            return
        self._place = Position(epoch=frame.epoch, seq=frame.seq)
        characters = _characters(frame)
        self._queue.append((frame, characters))
        self._characters += characters
        if (
            len(self._queue) > limits.SUBSCRIPTION_UPDATES_MAX
            or self._characters > limits.SUBSCRIPTION_CHARACTERS_MAX
        ):
            self._queue.clear()
            self._characters = 0
            self._lose()
        self._wake.set()

    def close(self, reason: str | None = None, failure: Exception | None = None) -> None:
        """No update follows what is queued; then ``failure`` is raised."""
        self.reason = reason
        self._failure = failure
        self._closed = True
        self._wake.set()

    def _lose(self) -> None:
        """What is queued is still right; behind it a snapshot is due."""
        self._place = None
        self._wake.set()


def _characters(frame: Frame | RuntimeFrame) -> int:
    return event_characters(frame.event) if isinstance(frame, Frame) else 0
