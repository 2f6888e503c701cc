"""The client of the Messages API against a real HTTP server on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from tests.vaala.models.anthropic_checker import complaints
from tests.vaala.models.asking import Asked
from vaala.agent.answer import AnswerBuilder, Place
from vaala.agent.history import messages_of
from vaala.live import LiveParts
from vaala.models.anthropic.model import make_client
from vaala.models.base import (
    Deadlines,
    Finish,
    ModelFailure,
    ModelRequest,
    TextDelta,
    ToolSpec,
    UserSaid,
)
from vaala.models.http import open_http
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala.models.set import open_models
from vaala.testing import CUT, STALL, chat_server
from vaala.testing.provider import Reply, one_byte_each
from vaala.testing.provider_anthropic import (
    answer,
    call_block,
    error_event,
    failed,
    message_start,
    text,
    text_block,
    thinking_block,
)
from vaala.testing.provider_chat import call, document
from vaala_protocol.content import TextContent
from vaala_protocol.items import Item

KEY = "sk-ant-0123456789abcdef"
TOOL = ToolSpec("read.file", "Read a file.", {"type": "object", "properties": {}})
REQUEST = ModelRequest("Be brief.", (TOOL,), b"", (UserSaid((TextContent(text="hello"),)),))


class Rig(Asked):
    """And what this format has besides."""

    async def items(self, request: ModelRequest) -> list[Item]:
        """Return the items that an agent makes of the answer."""
        places = iter(range(1, 100))
        live = LiveParts("s", lambda change: None)
        builder = AnswerBuilder(self.model, Place("s", "t", 1, lambda: next(places)), live)
        for event in await self.run(request):
            builder.take(event)
        said = builder.answer(partial=False)
        return [*said.items, *said.calls]


@asynccontextmanager
async def rig(model: str = "claude-opus-5-5", **headers: str) -> AsyncGenerator[Rig]:
    async with chat_server() as server, open_http({}) as http:
        secrets = {name: Secret(value) for name, value in headers.items()}
        provider = Provider(
            "anthropic", server.base_url, "anthropic", key=Secret(KEY), headers=secrets
        )
        await http.load()
        yield Rig(server, make_client(provider, http).model(model), REQUEST)


async def test_a_request_and_its_answer() -> None:
    async with rig() as r:
        r.server.reply(text("he", "llo"))
        events = await r.run()
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["he", "llo"]
        assert events[-1] == Finish("stop", "end_turn")
        (request,) = r.server.requests
        assert (request.method, request.path) == ("POST", "/v1/messages")
        assert request.headers["x-api-key"] == KEY
        assert request.headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in request.headers
        assert "anthropic-beta" not in request.headers
        assert complaints(request.body) == []


async def test_one_byte_at_a_time() -> None:  # B1-1
    async with rig() as r:
        whole = text("你好🦀").body
        stream = b"".join(piece for piece in whole if isinstance(piece, bytes))
        r.server.reply(Reply(tuple(one_byte_each(stream))))
        assert TextDelta("你好🦀") in await r.run()


async def test_configured_headers_go_before_ours_and_join_betas() -> None:
    async with rig("claude-sonnet-4-5", **{"X-Api-Key": "other", "Anthropic-Beta": "mine"}) as r:
        r.server.reply(text("x"))
        await r.run(replace(REQUEST, effort="low"))
        headers = r.server.requests[0].headers
        assert headers["x-api-key"] == "other"
        assert headers["anthropic-beta"] == "mine,interleaved-thinking-2025-05-14"


FAILURES = [
    (400, "invalid_request_error", "bad", "invalid_request", False),
    (400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum",
     "context_overflow", False),
    (400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + "
     "21333 > 200000", "context_overflow", False),
    (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API",
     "billing", False),
    (400, "invalid_request_error", "You have reached your specified API usage limits. You will "
     "regain access on 2027-01-01 at 00:00 UTC.", "billing", False),
    (401, "authentication_error", "invalid x-api-key", "auth", False),
    (402, "billing_error", "pay", "billing", False),
    (403, "permission_error", "no", "auth", False),
    (413, "request_too_large", "Request exceeds the maximum size", "context_overflow", False),
    (429, "rate_limit_error", "slow down", "rate_limit", True),
    (500, "api_error", "Internal server error", "overloaded", True),
    (504, "timeout_error", "late", "overloaded", True),
    (529, "overloaded_error", "Overloaded", "overloaded", True),
]  # fmt: skip


@pytest.mark.parametrize(("status", "type", "message", "kind", "retryable"), FAILURES)
async def test_errors(status: int, type: str, message: str, kind: str, retryable: bool) -> None:
    async with rig() as r:  # B4-3
        r.server.reply(failed(status, type, message))
        failure = await r.fails()
        assert (failure.kind, failure.retryable, failure.status) == (kind, retryable, status)
        assert message.split(":")[0] in failure.message
        assert len(r.server.requests) == 1


async def test_a_wait_that_the_server_asks_for() -> None:  # B4-1
    async with rig() as r:
        limits = [("retry-after", "7"), ("anthropic-ratelimit-requests-remaining", "0")]
        r.server.reply(failed(429, "rate_limit_error", "slow", headers=limits))
        assert (await r.fails()).retry_after_s == 7


async def test_an_unknown_model_names_those_that_were_perhaps_meant() -> None:
    async with rig("claude-sonet-5-5") as r:
        known = {"data": [{"type": "model", "id": "claude-sonnet-5-5", "display_name": "Sonnet"}]}
        r.server.reply(
            failed(404, "not_found_error", "model: claude-sonet-5-5"),
            document(json.dumps(known).encode()),
        )
        assert "did you mean anthropic/claude-sonnet-5-5?" in (await r.fails()).message
        asked = r.server.requests[1]
        assert (asked.path, asked.headers["x-api-key"]) == ("/v1/models?limit=1000", KEY)
        assert asked.headers["anthropic-version"] == "2023-06-01"


async def test_an_overload_in_the_middle_keeps_what_was_said() -> None:  # B2-1
    async with rig() as r:
        half = (message_start(), text_block(0, "half"), error_event("overloaded_error", "full"))
        r.server.reply(Reply(half))
        async with r.model.stream(REQUEST) as events:
            while not isinstance(event := await anext(events), TextDelta):
                pass
            assert event == TextDelta("half")
            with pytest.raises(ModelFailure) as caught:
                await anext(events)
        assert (caught.value.kind, caught.value.retryable) == ("overloaded", True)


async def test_silence_and_a_cut(autojump_clock: trio.testing.MockClock) -> None:  # B3-1 B3-2
    deadlines = Deadlines(first_byte_s=5, silence_s=7)
    async with rig() as r:
        r.server.reply(
            Reply((STALL,)), Reply((message_start(), STALL)), Reply((message_start(), CUT))
        )
        texts = [(await r.fails(replace(REQUEST, deadlines=deadlines))).message for _ in range(3)]
        assert "no first byte within 5 s" in texts[0]
        assert "silent for 7 s in the middle" in texts[1]
        assert "broke" in texts[2]


async def test_a_cancel_closes_the_request(autojump_clock: trio.testing.MockClock) -> None:
    async with rig() as r:
        r.server.reply(Reply((message_start(), text_block(0, "x"), STALL)))
        with trio.move_on_after(1) as scope:
            await r.run()
        assert scope.cancelled_caught
        with trio.fail_after(1):
            await r.server.requests[0].gone.wait()


async def next_request(r: Rig, effort: str | None = None) -> ModelRequest:
    """Ask once, have the agent keep the answer, and return what it asks next."""
    first = replace(REQUEST, effort=effort)
    items = await r.items(first)
    return replace(first, messages=(*REQUEST.messages, *messages_of(items, "user")))


THOUGHTFUL = answer(
    text_block(0, "\n\n"),
    thinking_block(1, "Let me ", "see."),
    text_block(2, "I look."),
    call_block(3, call("read.file", path="a")),
    stop="tool_use",
)


async def test_an_answer_goes_back_as_it_came() -> None:  # A4-2
    async with rig() as r:
        r.server.reply(THOUGHTFUL, text("done"))
        await r.run(await next_request(r))
        sent = r.server.requests[1].json["messages"][1]["content"]
        assert sent[0] == {"type": "thinking", "thinking": "Let me see.", "signature": "sig"}
        assert [block["type"] for block in sent] == ["thinking", "text", "tool_use"]
        assert complaints(r.server.requests[1].body) == []


async def test_thoughts_without_text_and_answer_survive() -> None:
    async with rig() as r:
        silent = answer(
            thinking_block(0, signature="s1"),
            call_block(1, call("read.file")),
            stop="tool_use",
        )
        r.server.reply(silent, text("done"))
        await r.run(await next_request(r))
        (thought, _) = r.server.requests[1].json["messages"][1]["content"]
        assert thought == {"type": "thinking", "thinking": "", "signature": "s1"}


BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a"
    " different conversation. Remove the block, or set"
    ' `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


async def test_a_thought_of_a_changed_conversation_is_left_to_the_server() -> None:
    """Once it is known that the server checks, each request says what to do."""
    async with rig() as r:
        r.server.reply(THOUGHTFUL)
        asked = await next_request(r)
        refused = failed(400, "invalid_request_error", BOUND)
        r.server.reply(refused, text("done"), text("again"))
        assert (await r.run(asked))[-1] == Finish("stop", "end_turn")
        await r.run(asked)
        _, first, *others = r.server.requests
        assert "block_binding" not in first.json["thinking"]
        assert len(others) == 2
        for request in others:
            assert request.json["messages"] == first.json["messages"]
            binding = {"prefix_mismatch_behavior": "drop_block"}
            assert request.json["thinking"]["block_binding"] == binding
            assert request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-4-5"])
async def test_a_signature_that_is_not_good_ends_no_conversation(model: str) -> None:
    async with rig(model) as r:
        r.server.reply(THOUGHTFUL)
        asked = await next_request(r, "high")
        bad = "messages.1.content.0: Invalid `signature` in `thinking` block"
        r.server.reply(failed(400, "invalid_request_error", bad), text("done"))
        assert (await r.run(asked))[-1] == Finish("stop", "end_turn")
        last = r.server.requests[2]
        assert b"Let me see." not in last.body
        assert complaints(last.body) == []


async def test_a_refusal_that_no_thought_explains_is_final() -> None:  # A7-4
    async with rig() as r:
        refused = failed(400, "invalid_request_error", BOUND)
        r.server.reply(refused)
        assert (await r.fails()).retryable is False
        assert len(r.server.requests) == 1
        r.server.reply(THOUGHTFUL)
        asked = await next_request(r)
        r.server.reply(refused, refused, refused, text("never"))
        await r.fails(asked)
        assert len(r.server.requests) == 5, "with, with drop_block, without; then no more"


async def test_it_is_found_by_its_name() -> None:
    async with chat_server() as server:
        server.answer(lambda request: text("hi"))
        provider = Provider("mine", server.base_url, "anthropic", models=("claude-x",))
        async with open_models([provider], {}) as models:
            model, _ = await models.resolve(None)
            assert (model.name, model.api) == ("mine/claude-x", "anthropic")
            async with model.stream(REQUEST) as events:
                assert [event async for event in events][-1] == Finish("stop", "end_turn")
        assert "x-api-key" not in server.requests[0].headers
