"""A model with a small window, that refuses what is longer, and writes summaries when asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from vaala.models.base import (
    Finish,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    TextDelta,
    UsageReport,
)
from vaala.models.chat.encode import Dialect, encode_messages, request_body
from vaala.testing.function_model import FunctionModel, Respond
from vaala_protocol.settings import Usage

Summarise = Callable[[ModelRequest], Sequence[ModelEvent]]


class SmallWindow(FunctionModel):
    """Counts a token for each ``bytes_per_token`` of a request; ``told``: its window is known.

    ``hangs``: a summary never comes.

    Each request is checked as a strict server would, and by ``check``, with its whole text.
    """

    def __init__(
        self,
        respond: Respond,
        window: int,
        *,
        told: bool = True,
        bytes_per_token: float = 3.5,
        summarise: Summarise | None = None,
        hangs: bool = False,
        name: str = "small",
    ) -> None:
        super().__init__(respond, name=name)
        self.window = window
        self._told = told
        self._bytes_per_token = bytes_per_token
        self._summarise = summarise or good_summary
        self._hangs = hangs
        self.bodies: list[str] = []
        """The requests that were answered, without those for summaries."""
        self.sizes: list[int] = []
        self.summaries = 0
        self.refusals = 0
        self.tokens = 0

    @property
    def window_tokens(self) -> int | None:
        return self.window if self._told else None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        body = request_body(request, self.name, Dialect())
        tokens = int(len(body) / self._bytes_per_token)
        if tokens > self.window:
            self.refusals += 1
            told = f"the maximum context length is {self.window} tokens, and {tokens} were sent"
            raise ModelFailure("context_overflow", told, status=400)
        self.tokens += tokens
        async with super().stream(request) as events:
            yield self._counted(events, request, body, tokens)

    async def _counted(
        self, events: AsyncIterator[ModelEvent], request: ModelRequest, body: bytes, tokens: int
    ) -> AsyncIterator[ModelEvent]:
        if is_summary(request):
            self.summaries += 1
            if self._hangs:
                await trio.sleep_forever()
            for event in self._summarise(request):
                yield event
            yield UsageReport(Usage(input=tokens, output=50))
            yield Finish("stop")
            return
        self.bodies.append(body.decode())
        self.sizes.append(tokens)
        async for event in events:
            yield (
                UsageReport(Usage(input=tokens, output=5))
                if isinstance(event, UsageReport)
                else event
            )


def is_summary(request: ModelRequest) -> bool:
    return "You write the memory of an agent" in request.instructions


def good_summary(request: ModelRequest) -> Sequence[ModelEvent]:
    return [TextDelta("Much was done, and it went well.")]


def failing_summary(request: ModelRequest) -> Sequence[ModelEvent]:
    raise ModelFailure("invalid_request", "no summaries today")


def text_of_request(request: ModelRequest) -> str:
    return (request.history + b"," + encode_messages(request.messages)).decode()
