"""Answers of models of every wire format, as a turn takes them into its log.

They come from servers on loopback, through the clients of the formats, so that what an item keeps
for its provider is what the format's own decoder has made.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from tests.vaala.core.random_log import STATES, RandomLog
from vaala.agent.answer import AnswerBuilder, Place
from vaala.changes import replace
from vaala.live import LiveParts
from vaala.models.base import Model, ModelFailure, ModelRequest
from vaala.models.client import client_for
from vaala.models.exchange import Answer
from vaala.models.http import Call, Http
from vaala.models.provider import Api, Provider
from vaala.package import Package
from vaala.testing import (
    provider_anthropic,
    provider_chat,
    provider_gemini,
    provider_responses,
)
from vaala.testing.provider import Reply, chat_server
from vaala_protocol.items import Item, Private, ToolCall, UserMessage

MODELS: dict[Api, tuple[str, ...]] = {
    "chat": ("gpt-4.1", "qwen3"),
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-6", "claude-3-5-haiku-latest"),
    "responses": ("gpt-5.5", "gpt-4.1"),
    "gemini": ("gemini-3-pro-preview", "gemini-2.5-flash"),
}
CALLS = (
    provider_chat.call("read_file", call_id="call_1", path="a.py"),
    provider_chat.call("mcp.server/tool", call_id="functions.tool:1"),
)


class NotSent(Http):
    """Keeps the body of a request that a client wants to send, and fails instead."""

    def __init__(self) -> None:
        super().__init__({}, Package())
        self.body = b""

    @asynccontextmanager
    async def exchange(self, call: Call) -> AsyncGenerator[Answer]:
        assert call.body is not None
        self.body = call.body
        raise ModelFailure("network", "nothing is sent")
        yield  # makes it a generator, as the decorator wants it


def model_of(api: Api, name: str, http: Http, base_url: str = "http://127.0.0.1:1") -> Model:
    return client_for(Provider(name=f"my-{api}", base_url=base_url, api=api), http).model(name)


async def body_of(model: Model, http: NotSent, request: ModelRequest) -> bytes:
    """The body of the request as the model's client would send it."""
    http.body = b""
    try:
        async with model.stream(request) as events:
            async for _ in events:
                raise AssertionError("an answer to a request that was not sent")
    except ModelFailure:
        if not http.body:
            raise
    return http.body


@dataclass(frozen=True)
class Said:
    """The items of one answer. ``secret`` stands in whatever they keep for the provider."""

    model: str
    items: tuple[Item, ...]
    secret: str


async def answers() -> list[Said]:
    """One answer of each kind from each model."""
    found: list[Said] = []
    for api, names in MODELS.items():
        for name in names:
            secret = base64.b64encode(f"secret of {api} {name}".encode()).decode().rstrip("=")
            secret += "=" * (-len(secret) % 4)
            async with chat_server() as server:
                http = Http({}, Package())
                model = model_of(api, name, http, server.base_url)
                for reply in _replies(api, secret):
                    server.reply(reply)
                    found.append(Said(model.name, await _take(model), secret))
                await http.aclose()
    return found


async def _take(model: Model) -> tuple[Item, ...]:
    place = Place("session", "turn", 0, count(1).__next__)
    builder = AnswerBuilder(model, place, LiveParts("session", lambda event: None))
    async with model.stream(ModelRequest("You help.", (), b"", ())) as events:
        async for event in events:
            builder.take(event)
    answer = builder.answer(partial=False)
    return (*answer.items, *answer.calls)


def _replies(api: Api, secret: str) -> Iterator[Reply]:
    match api:
        case "chat":
            yield provider_chat.text("It prints.")
            yield provider_chat.tool_calls(*CALLS)
        case "anthropic":
            yield from _anthropic(secret)
        case "responses":
            yield from _responses(secret)
        case "gemini":
            yield from _gemini(secret)


def _anthropic(secret: str) -> Iterator[Reply]:
    said, block = provider_anthropic.text_block, provider_anthropic.block
    answer = provider_anthropic.answer
    thought = provider_anthropic.thinking_block(0, "I look.", signature=secret)
    redacted = block(1, {"type": "redacted_thinking", "data": secret})
    calls = [provider_anthropic.call_block(2 + i, call) for i, call in enumerate(CALLS)]
    yield answer(thought, redacted, *calls, stop="tool_use")
    yield answer(thought, redacted, said(2, "It prints."))
    yield answer(said(0, "I look."), said(1, "Now."), *calls, stop="tool_use")
    yield answer(thought, stop="max_tokens")
    asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    yield answer(block(0, asked), block(1, result), said(2, "It is new."))
    yield answer(said(0, "I search."), block(1, asked), stop="pause_turn")


def _responses(secret: str) -> Iterator[Reply]:
    answer, said = provider_responses.answer, provider_responses.message
    number = count(1)

    def thought(encrypted: str = secret) -> provider_responses.FakeItem:
        return provider_responses.reasoning("I look.", encrypted=encrypted, id=f"rs_{next(number)}")

    calls = [provider_responses.function_call(call) for call in CALLS]
    yield answer(thought(), *calls)
    yield answer(thought(), thought(), said("It prints.", id="msg_1"))
    yield answer(said("I look.", id="msg_2"), *calls)
    yield answer(thought(encrypted=""), *calls)
    yield answer(thought())


def _gemini(secret: str) -> Iterator[Reply]:
    answer, say, call = provider_gemini.answer, provider_gemini.say, provider_gemini.call
    thought = say("I look.", thought=True)
    yield answer(thought, call("read_file", call_id="1", signature=secret), call("read_file"))
    yield answer(thought, say("It prints.", signature=secret))
    yield answer(say("I look."), call("read_file", call_id="2"))
    yield answer(thought)


class TaggedLog(RandomLog):
    """A random log whose items keep data for ``model`` that no provider has made."""

    def __init__(self, random: Random, model: Model) -> None:
        self._model = model
        super().__init__(random)

    def _private(self) -> Private | None:
        random, model = self._random, self._model
        if random.random() < 0.3:
            return None
        names = ("signature", "thinking", "id", "encrypted_content", "summary", "blocks", "parts")
        values: tuple[Any, ...] = (None, 1, [], {}, [{}], ["a"], self._text())
        data = {name: random.choice(values) for name in random.sample(names, random.randint(0, 4))}
        return Private(provider=model.provider, api=model.api, model=model.name, data=data)


class AnsweredLog(RandomLog):
    """A random log with real answers in it, some of them damaged."""

    def __init__(self, random: Random, answers: list[Said]) -> None:
        self._answers = answers
        super().__init__(random)

    def _step(self, number: int) -> list[Item]:
        random = self._random
        if random.random() < 0.4:
            return super()._step(number)
        items: list[Item] = []
        head: dict[str, Any] = {"turn_id": f"turn-{number // 2}", "step": number}
        if random.random() < 0.6:
            self._at += 1
            said = {"id": self._id(), "at": self._at, "created_at": 1, **head}
            items.append(UserMessage(content=self._content(), **said))
        for item in random.choice(self._answers).items:
            if random.random() < 0.1:
                continue  # lost
            self._at += 1
            items.append(self._again(item, {"id": self._id(), "at": self._at, **head}))
        return items

    def _again(self, item: Item, changes: dict[str, Any]) -> Item:
        random = self._random
        if random.random() < 0.05:
            changes["private"] = self._private()
        if isinstance(item, ToolCall):
            state = "done" if random.random() < 0.6 else random.choice(STATES)
            changes |= {"state": state, "result": self._content()}
        return replace(item, **changes)

    def _private(self) -> Private | None:
        """What an item keeps, also where it belongs to another kind of item, or is no such data."""
        random = self._random
        kept = [p for p in (getattr(i, "private", None) for i in self._some_items()) if p]
        if not kept or random.random() < 0.3:
            return super()._private()
        private: Private = random.choice(kept)
        if random.random() < 0.5:
            return private
        damaged: dict[str, Any] = {key: self._text() for key in private.data}
        return replace(private, data=damaged)

    def _some_items(self) -> tuple[Item, ...]:
        return self._random.choice(self._answers).items
