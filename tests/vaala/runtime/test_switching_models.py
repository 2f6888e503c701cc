"""One conversation that goes from model to model and provider to provider, with all that was said.

Four servers on loopback speak the four formats; each request is read by the strict validator.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import vaala
from vaala.handle import ConversationHandle
from vaala.models.provider import Api, Provider
from vaala.models.set import open_models
from vaala.testing import (
    ChatServer,
    provider_anthropic,
    provider_chat,
    provider_gemini,
    provider_responses,
)
from vaala.testing.provider import Reply, chat_server
from vaala.testing.validators import (
    Violation,
    check_anthropic_request,
    check_gemini_request,
    check_responses_request,
    validate_chat_request,
)
from vaala_protocol.items import ContextSummary, Reasoning, ToolCall
from vaala_protocol.settings import Settings

CHECKS: dict[Api, Callable[[bytes], list[Violation]]] = {
    "chat": validate_chat_request,
    "anthropic": check_anthropic_request,
    "responses": check_responses_request,
    "gemini": lambda body: check_gemini_request(body, signatures=True),
}
MODELS: dict[Api, tuple[str, str]] = {
    "chat": ("deepseek-reasoner", "qwen3"),
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-7"),
    "responses": ("gpt-5.5", "gpt-4.1"),
    "gemini": ("gemini-3-pro-preview", "gemini-3-flash-preview"),
}
SCHEMA = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}
MARKS = (b"matches this JSON Schema", b'"json_schema"', b"responseJsonSchema")


def secret_of(api: Api) -> str:
    return base64.b64encode(f"the secret of {api}, thirty bytes".encode()).decode()


def call_of(api: Api, number: int) -> Reply:
    """An answer with a thought and a call of a tool."""
    call = provider_chat.call("read_file", call_id=f"call_{number}", path="notes.txt")
    match api:
        case "chat":
            return provider_chat.tool_calls(call, say=f"I look, {number}.")
        case "anthropic":
            block = provider_anthropic.thinking_block(0, "Hm.", signature=secret_of(api))
            called = provider_anthropic.call_block(1, call)
            return provider_anthropic.answer(block, called, stop="tool_use")
        case "responses":
            encrypted, id = secret_of(api), f"rs_{number}"
            item = provider_responses.reasoning("Hm.", encrypted=encrypted, id=id)
            return provider_responses.answer(item, provider_responses.function_call(call))
        case "gemini":
            part = provider_gemini.say("Hm.", thought=True)
            asked = provider_gemini.call(
                "read_file", call_id=str(number), signature=secret_of(api), path="notes.txt"
            )
            return provider_gemini.answer(part, asked)


def text_of(api: Api, text: str) -> Reply:
    match api:
        case "chat":
            return provider_chat.text(text, reasoning=("Hm.",))
        case "anthropic":
            return provider_anthropic.text(text, thinking=("Hm.",))
        case "responses":
            return provider_responses.text(text)
        case "gemini":
            return provider_gemini.text(text, thoughts=("Hm.",))


class Travel:
    """A conversation, and the servers that it goes to."""

    def __init__(self, talk: ConversationHandle, servers: dict[Api, ChatServer]) -> None:
        self.talk = talk
        self.servers = servers
        self.said: list[str] = []
        """What the next request has to hold of what was said before."""
        self._number = 0

    async def turn(self, api: Api, number: int = 0, **options: Any) -> None:
        """Make a turn with a tool at a server, that has to get all that was said before."""
        self._number += 1
        word = f"word{self._number}"
        self.servers[api].reply(call_of(api, self._number))
        said = f"answer{self._number}"
        text = json.dumps({"said": said}) if "output_schema" in options else said
        self.servers[api].reply(text_of(api, text))
        before = len(self.servers[api].requests)
        result = await self.talk.run(f"Say {word}.", **options)
        assert result.turn.state == "completed", result.turn.message
        assert list(result.turn.usage) == [f"{api}/{MODELS[api][number]}"]
        self.check()
        for request in self.servers[api].requests[before:]:
            body = request.body.decode()
            assert [one for one in (*self.said, word) if one not in body] == []
        self.said += [word, said]

    def check(self) -> None:
        """Every request so far is a legal one, and holds no other provider's secret."""
        for api, server in self.servers.items():
            for request in server.requests:
                assert CHECKS[api](request.body) == [], api
                others = [secret_of(other).encode() for other in CHECKS if other != api]
                assert not any(secret in request.body for secret in others), api


@asynccontextmanager
async def travel(directory: Path) -> AsyncGenerator[Travel]:
    (directory / "notes.txt").write_text("buy milk\n")
    async with AsyncExitStack() as stack:
        servers: dict[Api, ChatServer] = {}
        for api in CHECKS:
            servers[api] = await stack.enter_async_context(chat_server())
        providers = [Provider(api, server.base_url, api) for api, server in servers.items()]
        models = await stack.enter_async_context(open_models(providers, {}))
        runtime = await stack.enter_async_context(vaala.open_runtime(models=models))
        talk = await runtime.create_conversation(directory=str(directory))
        yield Travel(talk, servers)


def of(api: Api, number: int = 0, **more: Any) -> Settings:
    return Settings(model=f"{api}/{MODELS[api][number]}", **more)


async def test_a_conversation_goes_round_all_formats_and_keeps_its_history(tmp_path: Path) -> None:
    async with travel(tmp_path) as trip:
        for api in CHECKS:
            await trip.turn(api, settings=of(api, effort="high"))
        for api in reversed(CHECKS):
            await trip.talk.configure(of(api))
            await trip.turn(api)
        for api, server in trip.servers.items():
            thoughts = [secret_of(api).encode() in one.body for one in server.requests]
            assert api == "chat" or thoughts[-1], "its own thoughts come back to a model"
        items = (await trip.talk.items(limit=200)).items
        assert sum(isinstance(item, ToolCall) for item in items) == 8
        assert any(isinstance(item, Reasoning) for item in items)


async def test_it_goes_on_behind_a_summary(tmp_path: Path) -> None:
    async with travel(tmp_path) as trip:
        for api in CHECKS:
            await trip.turn(api, settings=of(api))
        await trip.talk.configure(of("responses"))
        trip.servers["responses"].reply(text_of("responses", "We said answer1 to answer4."))
        turn = await trip.talk.compact()
        async with trip.talk.subscribe() as updates:
            while (await trip.talk.turn(turn.id)).turn.state == "running":
                await anext(updates)
        # What a person asked for first stands beside the summary; what was answered is in it.
        trip.said = ["We said answer1 to answer4."]
        for number in (0, 1):
            for api in CHECKS:
                await trip.turn(api, number, settings=of(api, number))
        items = (await trip.talk.items(limit=200)).items
        assert sum(isinstance(item, ContextSummary) for item in items) == 1


async def test_each_format_is_asked_for_a_document_on_the_way(tmp_path: Path) -> None:
    async with travel(tmp_path) as trip:
        for api in CHECKS:
            await trip.turn(api, settings=of(api), output_schema=SCHEMA)
            assert any(mark in trip.servers[api].requests[-1].body for mark in MARKS)
        for api in CHECKS:
            await trip.turn(api, settings=of(api, effort="low"))
            assert not any(mark in trip.servers[api].requests[-1].body for mark in MARKS)
