"""`FunctionModel`: a model that is a function, for tests that decide each answer in Python."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    Finish,
    FirstByte,
    Message,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReport,
)
from vaala.models.chat.encode import Dialect, encode_messages, request_body
from vaala.testing.validators import validate_chat_request
from vaala_protocol.base import decode, encode
from vaala_protocol.settings import Usage

Respond = Callable[[ModelRequest], AsyncGenerator[ModelEvent]]


class FunctionModel(Model):
    """``respond`` yields the events of each answer.

    Every request is encoded as chat completions and read by the strict validator; one that a
    server could refuse raises ``AssertionError``, and stays in ``refused``.
    """

    def __init__(self, respond: Respond, *, name: str = "function") -> None:
        self._respond = respond
        self._name = name
        self.refused: list[str] = []
        self.requests = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return "function"

    @property
    def api(self) -> str:
        return "chat"

    @property
    def window_tokens(self) -> int | None:
        return None

    def encode(self, messages: Sequence[Message]) -> bytes:
        return encode_messages(messages)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.requests += 1
        body = request_body(request, self._name, Dialect("max_completion_tokens"))
        if violations := validate_chat_request(body):
            self.refused.append("; ".join(map(str, violations)))
            raise AssertionError(self.refused[-1])
        async with aclosing(self._respond(request)) as events:
            yield events


def answer(text: str = "", *calls: tuple[str, dict[str, Any]]) -> list[ModelEvent]:
    """Return the events of an answer with this text and these calls, each a name and arguments."""
    events: list[ModelEvent] = [FirstByte()]
    if text:
        events.append(TextDelta(text))
    for index, (name, arguments) in enumerate(calls):
        whole = encode(arguments).decode()
        events += [CallStart(index, name), CallDelta(index, whole), CallEnd(index, whole)]
    events.append(UsageReport(Usage(input=1, output=1)))
    events.append(Finish("tool_calls" if calls else "stop"))
    return events


@dataclass(frozen=True, slots=True)
class Said:
    """The end of a conversation, as a request tells it."""

    prompt: str
    """The newest message of a person."""
    results: tuple[str, ...]
    """What the calls since then gave, in order."""


def newest(request: ModelRequest) -> Said:
    """Return the newest prompt of a request, and the results that came after it."""
    pieces = [piece for piece in (request.history, encode_messages(request.messages)) if piece]
    prompt, results = "", list[str]()
    for message in decode(b"[" + b",".join(pieces) + b"]"):
        match message:
            case {"role": "user", "content": str(text)}:
                prompt, results = text, []
            case {"role": "tool", "content": str(text)}:
                results.append(text)
            case _:
                pass
    return Said(prompt, tuple(results))
