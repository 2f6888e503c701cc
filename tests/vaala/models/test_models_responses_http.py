"""The Responses client against a real HTTP server on loopback."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from tests.vaala.models.asking import Asked
from vaala.agent.answer import AnswerBuilder, Place, stream_answer
from vaala.agent.history import History
from vaala.live import LiveParts
from vaala.models.base import (
    AssistantSaid,
    CallEnd,
    CallPart,
    CallResult,
    Deadlines,
    Finish,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ProviderBlob,
    TextDelta,
    ToolSpec,
    UserSaid,
)
from vaala.models.client import client_for
from vaala.models.http import open_http
from vaala.models.provider import Provider
from vaala.models.responses.model import make_client
from vaala.models.secret import Secret
from vaala.testing import CUT, STALL, Reply, chat_server
from vaala.testing.provider import one_byte_each
from vaala.testing.provider_chat import call, document
from vaala.testing.provider_responses import (
    answer,
    error,
    event,
    function_call,
    message,
    reasoning,
    response,
    stream,
    text,
    tool_calls,
)
from vaala.waits import Waits
from vaala_protocol.content import TextContent
from vaala_protocol.items import AssistantMessage, Private

KEY = "sk-test-0123456789abcdef"
TOOL = ToolSpec("files.read", "Read a file.", {"type": "object", "properties": {}})


def said(words: str) -> UserSaid:
    return UserSaid((TextContent(text=words),))


REQUEST = ModelRequest("Be brief.", (TOOL,), b"", (said("hello"),))


class Rig(Asked):
    """And what this format has besides."""

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [request.json for request in self.server.requests if request.method == "POST"]


@asynccontextmanager
async def rig(model: str = "m") -> AsyncGenerator[Rig]:
    async with chat_server() as server, open_http({}) as http:
        provider = Provider("fake", server.base_url, "responses", Secret(KEY), windows={"m": 99})
        # Imported here, so that no test has the thread of the first import in it.
        await http.load()
        yield Rig(server, make_client(provider, http).model(model), REQUEST)


async def test_a_request_and_its_answer() -> None:
    async with rig() as r:
        r.server.reply(text("he", "llo"))
        events = await r.run()
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["he", "llo"]
        assert events[-1] == Finish("stop", "completed")
        (request,) = r.server.requests
        assert (request.method, request.path) == ("POST", "/v1/responses")
        assert request.headers["authorization"] == f"Bearer {KEY}"
        (tool,) = request.json["tools"]
        assert tool["name"].startswith("files_read_")
        assert request.json | {"tools": [], "input": []} == {
            "model": "m",
            "input": [],
            "instructions": "Be brief.",
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"},
            "tools": [],
        }


async def test_byte_by_byte_it_is_the_same() -> None:  # B1-1
    async with rig() as r:
        whole = text("he", "llo")
        pieces = [one for piece in whole.body if isinstance(piece, bytes) for one in
                  one_byte_each(piece)]  # fmt: skip
        r.server.reply(whole, stream(*pieces))
        assert await r.run() == await r.run()


async def test_the_name_of_a_tool_goes_there_and_back() -> None:  # B7-3
    async with rig() as r:
        name = r.model.encode([AssistantSaid("", calls=(CallPart("x", TOOL.name, "{}"),))])
        r.server.answer(lambda request: tool_calls(call(request.json["tools"][0]["name"])))
        events = await r.run()
        assert [event.name for event in events if hasattr(event, "name")] == [TOOL.name]
        assert r.sent[0]["tools"][0]["name"].encode() in name
        assert [event.arguments for event in events if isinstance(event, CallEnd)] == ["{}"]


async def round_trip(r: Rig) -> ModelRequest:
    """Ask once, and return the request that follows with the answer's call and its result."""
    r.server.reply(answer(reasoning("why"), function_call(call("f", a=1))))
    (blob,) = [event for event in await r.run() if isinstance(event, ProviderBlob)]
    private = Private(
        provider=r.model.provider, api=r.model.api, model=r.model.name, data=blob.data
    )
    asked = AssistantSaid("", calls=(CallPart("c" * 32, "f", '{"a":1}', private),))
    result = CallResult("c" * 32, "f", (TextContent(text="x"),))
    return replace(REQUEST, history=r.model.encode([said("one"), asked]), messages=(result,))


async def test_encrypted_reasoning_goes_back() -> None:
    async with rig() as r:
        request = await round_trip(r)
        r.server.reply(text("done"))
        await r.run(request)
        (user, thought, asked, result) = r.sent[1]["input"]
        assert thought == reasoning("why").item
        assert asked["call_id"] == result["call_id"]
        assert user["role"] == "user"


@pytest.mark.parametrize("say", ["", "so"])
async def test_an_answer_goes_back_through_the_items_of_a_log(say: str) -> None:
    async with rig() as r:
        items = [reasoning("why", id="rs_1"), function_call(call("f", a=1))]
        if say:
            items[1:1] = [message("let me ", "see", id="msg_1"), reasoning("more", id="rs_2"),
                          message(say, id="msg_2")]  # fmt: skip
        r.server.reply(answer(*items), text("done"))
        places = itertools.count(1)
        live = LiveParts("s", lambda event: None)
        builder = AnswerBuilder(r.model, Place("s", "t", 1, lambda: next(places)), live)
        await stream_answer(r.model, REQUEST, builder, Waits(lambda waits: None), lambda: None)
        built = builder.answer(partial=False)
        history = History(r.model)
        history.close([*built.items, *built.calls])
        encoded, open_messages = history.request([])
        await r.run(replace(REQUEST, history=encoded, messages=open_messages))
        sent = [item for item in r.sent[1]["input"] if "type" in item]
        kept = [one.item["id"] for one in items if one.item["type"] != "function_call"]
        assert [item["id"] for item in sent if "id" in item] == kept
        assert sent[0] == reasoning("why", id="rs_1").item
        assert sent[-2]["type"] == "function_call"
        # An item without text is shown only where there is nothing else to keep the data with.
        assert all(item.text for item in built.items if isinstance(item, AssistantMessage))


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "The encrypted content gAAA... could not be verified.",
              code="invalid_encrypted_content"),
        error(404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to"
              " false. Try again with `store` set to true, or remove this item.", param="input"),
        error(400, "Item 'rs_1' of type 'reasoning' was provided without its required following"
              " item.", param="input"),
        error(400, "Missing required parameter: 'input[2].id'.", param="input[2].id"),
    ],
)  # fmt: skip
async def test_refused_reasoning_does_not_brick_the_conversation(refusal: Reply) -> None:
    async with rig() as r:
        request = await round_trip(r)
        r.server.reply(refusal, text("done"), text("again"))
        assert TextDelta("done") in await r.run(request)
        assert [item.get("type") for item in r.sent[2]["input"]] == [
            None, "function_call", "function_call_output",
        ]  # fmt: skip
        assert await r.run(request)
        assert r.sent[3]["input"][1]["type"] == "reasoning"


async def test_a_refusal_that_stays_ends() -> None:
    async with rig() as r:
        request = await round_trip(r)
        words = "The encrypted content could not be verified; reasoning.summary; 'include'"
        r.server.answer(lambda _: error(400, words))
        failure = await r.fails(request)
        assert (failure.kind, failure.retryable) == ("invalid_request", False)
        assert len(r.sent) == 1 + 4


@pytest.mark.parametrize(
    ("refusal", "field"),
    [
        (error(400, "Encrypted content is not supported with this model.", param="include"),
         "include"),
        (document(b'{"detail":[{"loc":["body","include"],"msg":"extra"}]}', status=422), "include"),
        (error(400, "Your organization must be verified to generate reasoning summaries.",
               param="reasoning.summary", code="unsupported_value"), "reasoning"),
        (error(400, "Unsupported parameter: 'reasoning' is not supported.", param="reasoning"),
         "reasoning"),
    ],
)  # fmt: skip
async def test_what_is_refused_once_is_not_asked_again(refusal: Reply, field: str) -> None:
    async with rig() as r:
        r.server.reply(refusal, text("a"), text("b"))
        assert TextDelta("a") in await r.run()
        assert TextDelta("b") in await r.run()
        assert [field in one for one in r.sent] == [True, False, False]


async def test_old_models_are_not_asked_for_reasoning() -> None:
    async with rig("gpt-4.1-mini") as r:
        r.server.reply(text("a"))
        await r.run()
        assert not {"include", "reasoning"} & r.sent[0].keys()


async def test_an_effort_that_is_refused_is_told() -> None:
    async with rig("gpt-4.1") as r:
        words = "Unsupported parameter: 'reasoning.effort' is not supported with this model."
        r.server.reply(error(400, words, param="reasoning.effort"))
        assert "reasoning.effort" in (await r.fails(replace(REQUEST, effort="high"))).message
        assert len(r.sent) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request"), (401, "auth"), (402, "billing"), (403, "auth"),
     (404, "invalid_request"), (422, "invalid_request")],
)  # fmt: skip
async def test_a_refusal_costs_one_request(status: int, kind: str) -> None:  # B4-3 A7-4
    async with rig() as r:
        r.server.reply(error(status, f"no, {KEY} is bad; please include more"))
        failure = await r.fails()
        assert (failure.kind, failure.retryable, failure.status) == (kind, False, status)
        assert len(r.sent) == 1
        assert KEY not in failure.message


async def test_retry_after() -> None:  # B4-1
    async with rig() as r:
        r.server.reply(error(429, "slow down", headers=[("retry-after", "7")]))
        failure = await r.fails()
        assert (failure.kind, failure.retryable, failure.retry_after_s) == ("rate_limit", True, 7)


async def test_an_unknown_model_names_those_that_there_are() -> None:
    async with rig("gtp-5") as r:
        models = b'{"data":[{"id":"gpt-5"},{"id":"text-embed"}]}'
        unknown = error(400, "The requested model 'gtp-5' does not exist.", code="model_not_found")
        r.server.reply(unknown, document(models))
        assert (await r.fails()).message.endswith("did you mean fake/gpt-5?")


async def test_a_broken_connection_is_told_after_what_came() -> None:  # A2-1
    async with rig() as r:
        half = event("response.output_text.delta", output_index=0, delta="half")
        r.server.reply(stream(half, CUT))
        seen: list[ModelEvent] = []
        with pytest.raises(ModelFailure) as caught:  # noqa: PT012 - what came before counts too
            async with r.model.stream(REQUEST) as events:
                async for one in events:
                    seen.append(one)
        assert seen[-1] == TextDelta("half")
        assert (caught.value.kind, caught.value.retryable) == ("network", True)


async def test_a_connection_that_breaks_after_the_end_is_fine() -> None:  # B1-6
    async with rig() as r:
        r.server.reply(stream(event("response.completed", response=response("completed")), CUT))
        assert (await r.run())[-1] == Finish("stop", "completed")


async def test_cancel_in_a_stall_closes_the_socket_at_once(  # B3-2
    mock_clock: trio.testing.MockClock,
) -> None:
    async with rig() as r, trio.open_nursery() as nursery:
        r.server.reply(stream(event("response.queued", response={}), STALL))
        nursery.start_soon(r.run)
        await r.server.wait_requests(1)
        await trio.testing.wait_all_tasks_blocked(0.02)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await r.server.requests[0].gone.wait()
        assert mock_clock.current_time() == trio.current_time()


async def test_silence_in_the_middle(mock_clock: trio.testing.MockClock) -> None:  # B3-1
    async with rig() as r, trio.open_nursery() as nursery:
        r.server.reply(stream(event("response.in_progress", response={}), STALL))
        failures: list[ModelFailure] = []

        async def run() -> None:
            quick = Deadlines(first_byte_s=60, silence_s=30)
            failures.append(await r.fails(replace(REQUEST, deadlines=quick)))

        nursery.start_soon(run)
        await r.server.wait_requests(1)
        await trio.testing.wait_all_tasks_blocked(0.02)
        mock_clock.jump(29.9)
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert failures == []
        mock_clock.jump(0.2)
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert failures[0].message == "fake: silent for 30 s in the middle of the answer"


async def test_a_connection_is_used_again() -> None:
    async with rig() as r:
        r.server.reply(text("a"), text("b"))
        await r.run()
        await r.run()
        assert [request.connection for request in r.server.requests] == [0, 0]


async def test_names_window_and_choice() -> None:
    async with rig() as r:
        assert (r.model.name, r.model.provider, r.model.api) == ("fake/m", "fake", "responses")
        assert r.model.window_tokens == 99
    async with open_http({}) as http:
        provider = Provider("fake", "http://127.0.0.1:1/v1", "responses")
        assert type(client_for(provider, http)) is make_client
