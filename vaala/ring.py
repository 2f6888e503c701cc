"""`Published` frames, and the ring of the newest ones, from which a reader that returns goes on."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Generic, TypeVar

from vaala import limits

F = TypeVar("F")


class Published(Generic[F]):
    """A frame that its readers share, with room for its encoding: one serves them all."""

    __slots__ = ("frame", "size", "wire")

    def __init__(self, frame: F, size: int) -> None:
        self.frame = frame
        self.size = size
        """Characters, about; see `vaala.fanout.Fanout`."""
        self.wire: bytes | None = None
        """Filled in by whoever first sends the frame; None: nobody has."""


class Ring(Generic[F]):
    """The newest frames, one for each number, bounded in frames and in characters."""

    def __init__(self, start: int) -> None:
        """``start`` is the number before the first frame that is going to be added."""
        self._start = start
        self._frames: deque[Published[F]] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, published: Published[F]) -> None:
        """Add the next frame; the oldest ones go when there are too many."""
        self._frames.append(published)
        self._size += published.size
        while len(self._frames) > limits.RING_FRAMES_MAX or self._size > limits.RING_CHARACTERS_MAX:
            self._size -= self._frames.popleft().size
            self._start += 1

    def after(self, seq: int) -> list[Published[F]] | None:
        """Return all that came after a number, None when some of it is gone."""
        if seq < self._start:
            return None
        return list(islice(self._frames, seq - self._start, None))
