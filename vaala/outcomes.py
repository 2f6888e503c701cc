"""How the turns of a session ended, and waiting for one from before its message is sent."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

import trio

from vaala.dao.session_log import SessionLog
from vaala.session_view import read_turn
from vaala_protocol.state import TurnResult


class Expectation:
    """The future result of the turn that takes one message."""

    __slots__ = ("_outcome", "_settled")

    def __init__(self) -> None:
        self._settled = trio.Event()
        self._outcome: TurnResult | Exception | None = None

    def settle(self, outcome: TurnResult | Exception) -> None:
        if not self._settled.is_set():
            self._outcome = outcome
            self._settled.set()

    async def wait(self) -> TurnResult:
        """Return how the turn ended. Raises what keeps it from running: withdrawn, closed."""
        await self._settled.wait()
        if isinstance(self._outcome, TurnResult):
            return self._outcome
        assert self._outcome is not None
        raise self._outcome


class Outcomes:
    """The ended turns of one session; those that are waited for, by the message's client id."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._last: TurnResult | None = None
        self._waiting: dict[str, Expectation] = {}
        self._news = trio.Event()

    @contextmanager
    def expect(self, client_id: str) -> Generator[Expectation]:
        """Expect a turn while the block runs; enter before the message is sent."""
        expectation = self._waiting.setdefault(client_id, Expectation())
        try:
            yield expectation
        finally:
            self._waiting.pop(client_id, None)

    def ended(self, client_ids: Iterable[str], result: TurnResult) -> None:
        """A turn that took these messages has ended."""
        self._last = result
        self.settle(client_ids, result)

    def settle(self, client_ids: Iterable[str], outcome: TurnResult | Exception) -> None:
        """Tell those who wait for one of these messages."""
        for client_id in client_ids:
            if (expectation := self._waiting.get(client_id)) is not None:
                expectation.settle(outcome)

    def fail(self, error: Exception) -> None:
        """The session is gone: nothing of it will end."""
        self.settle(tuple(self._waiting), error)
        self.notify()

    def notify(self) -> None:
        """Wake those who wait for news."""
        news, self._news = self._news, trio.Event()
        news.set()

    async def news(self) -> None:
        """Wait until a turn has ended and the next one, if any, has begun."""
        await self._news.wait()

    async def of(self, turn_id: str) -> TurnResult:
        """Return how a turn stands or ended; read from the log when it is not the last one.

        Raises `NotFound`.
        """
        if self._last is None or self._last.turn.id != turn_id:
            return await read_turn(self._log, turn_id)
        return self._last
