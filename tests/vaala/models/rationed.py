"""A provider that lets so many requests through in each window of time, and refuses the others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

import trio

from vaala.models.base import ModelEvent, ModelFailure, ModelRequest
from vaala.models.limiter import Limiter
from vaala.testing.function_model import FunctionModel, Said, answer, newest


class Rationed(FunctionModel):
    """Answers each prompt by itself, ``latency_s`` after it came, and refuses within half a second;
    all its calls share a limiter.

    ``tells``: a refusal says when the window is over. ``came`` has the prompts in the order in
    which they came first, ``passed`` and ``refused`` as they came each time; ``early`` are those
    that came before they might.
    """

    def __init__(
        self,
        per_window: int,
        window_s: float = 60.0,
        *,
        latency_s: float = 0.5,
        tells: bool = True,
        requests_max: int | None = None,
    ) -> None:
        super().__init__(self._respond)
        self._per_window = per_window
        self._window_s = window_s
        self._latency_s = latency_s
        self._tells = tells
        self._limiter = Limiter(requests_max)
        self._window, self._used = 0, 0
        self._closed_until = 0.0
        self.latencies: dict[str, float] = {}
        """Of certain prompts."""
        self.failures: dict[str, ModelFailure] = {}
        """What certain prompts get in the place of an answer."""
        self.replies: Callable[[Said], Sequence[ModelEvent]] = lambda said: answer(said.prompt)
        self.came: list[str] = []
        self.passed: list[str] = []
        self.refused: list[str] = []
        self.early: list[str] = []
        self.running, self.running_max = 0, 0

    @property
    def limiter(self) -> Limiter:
        return self._limiter

    async def _respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        said = newest(request)
        prompt = said.prompt
        if prompt not in self.came:
            self.came.append(prompt)
        if trio.current_time() < self._closed_until:
            self.early.append(prompt)
        passes = self._passes()
        (self.passed if passes else self.refused).append(prompt)
        self.running += 1
        self.running_max = max(self.running_max, self.running)
        try:
            latency_s = self.latencies.get(prompt, self._latency_s)
            await trio.sleep(latency_s if passes else min(latency_s, 0.5))
        finally:
            self.running -= 1
        if not passes:
            raise self._refusal()
        if (failure := self.failures.get(prompt)) is not None:
            raise failure
        for event in self.replies(said):
            yield event

    def _passes(self) -> bool:
        window = int(trio.current_time() // self._window_s)
        if window != self._window:
            self._window, self._used = window, 0
        self._used += 1
        return self._used <= self._per_window

    def _refusal(self) -> ModelFailure:
        now = trio.current_time()
        wait_s = (now // self._window_s + 1) * self._window_s - now
        if self._tells:
            self._closed_until = max(self._closed_until, now + wait_s)
        return ModelFailure(
            "rate_limit",
            "p: rate limit (HTTP 429)",
            retryable=True,
            retry_after_s=wait_s if self._tells else None,
            status=429,
        )
