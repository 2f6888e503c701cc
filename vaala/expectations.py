"""Waiting for the turn that takes a message, from before the message is sent."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

import trio

from vaala.requests import TurnResult


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


class Expectations:
    """Those that are waited for in one session, by the client id of the message."""

    def __init__(self) -> None:
        self._waiting: dict[str, Expectation] = {}

    @contextmanager
    def expect(self, client_id: str) -> Generator[Expectation]:
        """Expect a turn while the block runs; enter before the message is sent."""
        expectation = self._waiting.setdefault(client_id, Expectation())
        try:
            yield expectation
        finally:
            self._waiting.pop(client_id, None)

    def settle(self, client_ids: Iterable[str], outcome: TurnResult | Exception) -> None:
        for client_id in client_ids:
            if (expectation := self._waiting.get(client_id)) is not None:
                expectation.settle(outcome)

    def fail(self, error: Exception) -> None:
        """The session is gone: nothing of it will end."""
        self.settle(tuple(self._waiting), error)
