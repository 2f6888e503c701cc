"""A small loop that stands for the agent: it plays a scripted model against functions as tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vaala.models.base import (
    AssistantSaid,
    CallEnd,
    CallPart,
    CallResult,
    CallStart,
    Finish,
    Message,
    Model,
    ModelEvent,
    ModelRequest,
    ProviderBlob,
    TextDelta,
    UserSaid,
)
from vaala_protocol.content import TextContent
from vaala_protocol.ids import new_id
from vaala_protocol.items import Private

Tools = Callable[[str, dict[str, Any]], str]


def echo(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {json.dumps(arguments)}"


async def play(model: Model, request: ModelRequest) -> list[ModelEvent]:
    async with model.stream(request) as events:
        return [event async for event in events]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@dataclass
class Agent:
    """As much of a loop as a model needs; closed steps are kept encoded, as in the real one."""

    model: Model
    tools: Tools = echo
    history: bytes = b""
    said: list[str] = field(default_factory=list)

    async def prompt(self, text: str) -> str:
        """Run a turn and return the last answer's text."""
        self.close([UserSaid((TextContent(text=text),))])
        open_step: list[Message] = []
        while True:
            request = ModelRequest("", (), self.history, tuple(open_step))
            answer, results = self.answered(await play(self.model, request))
            self.said.append(answer.text)
            self.close(open_step)
            open_step = [answer, *results] if answer.calls or answer.text.strip() else []
            if not results:
                self.close(open_step)
                return answer.text

    def close(self, messages: list[Message]) -> None:
        pieces = [self.history, self.model.encode(messages)]
        self.history = b",".join(piece for piece in pieces if piece)

    def answered(self, events: list[ModelEvent]) -> tuple[AssistantSaid, list[CallResult]]:
        assert isinstance(events[-1], Finish)
        names = [event.name for event in events if isinstance(event, CallStart)]
        texts = [event.arguments for event in events if isinstance(event, CallEnd)]
        calls = tuple(CallPart(new_id(), n, a) for n, a in zip(names, texts, strict=True))
        blobs = [event.data for event in events if isinstance(event, ProviderBlob)]
        private = Private(provider="scripted", api=self.model.api, model="scripted", data=blobs[-1])
        answer = AssistantSaid(text_of(events), (), calls, private)
        results = []
        for call in calls:
            content = TextContent(text=self.tools(call.name, json.loads(call.arguments)))
            results.append(CallResult(call.id, call.name, (content,)))
        return answer, results
