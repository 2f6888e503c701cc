"""From the body of an answer to its events: what every wire format has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from vaala.models.base import ModelEvent, ModelFailure
from vaala.models.failures import Origin, failure_of_kind
from vaala.models.limits import TAIL_S

if TYPE_CHECKING:
    from vaala.models.exchange import Answer


class Decoder(ABC):
    """Takes the body of an answer in pieces of any size. Sans-I/O.

    `feed` gives events until `ended`; `end` is called when the body ends and gives the rest, or
    raises: an answer without its terminal event is incomplete. Both raise `ModelFailure`, once,
    after the events before the fault were given.
    """

    ended = False
    """The terminal event was given; more bytes would say nothing."""

    @abstractmethod
    def feed(self, piece: bytes) -> Iterator[ModelEvent]: ...

    @abstractmethod
    def end(self) -> Iterator[ModelEvent]: ...

    @property
    @abstractmethod
    def finished(self) -> bool:
        """The server said how the answer finished; only usage and the end may still come."""

    @property
    @abstractmethod
    def events_seen(self) -> int:
        """Events of the stream so far that are progress; keep-alives are none."""


@asynccontextmanager
async def read_events(
    answer: Answer, decoder: Decoder, origin: Origin, progress_s: float
) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
    """Give the events of an answer, read from its connection as they are asked for.

    What came before a failure is given before the failure is raised. ``progress_s`` bounds the
    time between two events of the stream. Cancel, or leaving early: the rest is not read.
    """
    yield _Events(answer, decoder, origin, progress_s)
    if decoder.ended:
        await answer.drain()


class _Events(AsyncIterator[ModelEvent]):
    def __init__(self, answer: Answer, decoder: Decoder, origin: Origin, progress_s: float) -> None:
        self._answer = answer
        self._decoder = decoder
        self._origin = origin
        self._progress_s = progress_s
        self._by = trio.current_time() + progress_s
        """When the next read is given up whatever else comes: for lack of events, or of an end."""
        self._ready: deque[ModelEvent] = deque()
        self._failure: ModelFailure | None = None
        self._over = False

    async def __anext__(self) -> ModelEvent:
        while not self._ready:
            if self._failure is not None:
                failure, self._failure, self._over = self._failure, None, True
                raise failure
            if self._over or self._decoder.ended:
                raise StopAsyncIteration
            try:
                self._take(await self._next())
            except ModelFailure as failure:
                self._failure = failure
        return self._ready.popleft()

    async def _next(self) -> Iterator[ModelEvent]:
        """Read once and return what it gives."""
        problem: ModelFailure
        try:
            piece = await self._answer.read(self._by)
            return self._decoder.end() if piece is None else self._decoder.feed(piece)
        except ModelFailure as failure:
            problem = failure
        except TimeoutError:
            text = f"nothing but keep-alives for {self._progress_s:g} s"
            problem = failure_of_kind(self._origin, "network", text, retryable=True)
        if not self._decoder.finished:
            raise problem
        # It broke or dragged on, but after the server had said that the answer is complete.
        return self._decoder.end()

    def _take(self, events: Iterator[ModelEvent]) -> None:
        was_finished, before = self._decoder.finished, self._decoder.events_seen
        self._ready.extend(events)
        if self._decoder.finished:
            if not was_finished:
                self._by = min(self._by, trio.current_time() + TAIL_S)
        elif self._decoder.events_seen != before:
            self._by = trio.current_time() + self._progress_s
