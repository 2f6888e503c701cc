"""The client of generateContent against a real HTTP server on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from tests.vaala.models.asking import Asked
from vaala.agent.answer import Answer, AnswerBuilder, Place
from vaala.agent.history import messages_of
from vaala.live import LiveParts
from vaala.models.base import (
    CallStart,
    Deadlines,
    Finish,
    FirstByte,
    Message,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolSpec,
    UsageReport,
    UserSaid,
)
from vaala.models.client import client_for
from vaala.models.gemini.model import GeminiModel, make_client
from vaala.models.gemini.names import legal_name
from vaala.models.http import open_http
from vaala.models.limits import TAIL_S
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala.testing import CUT, STALL, Reply, chat_server
from vaala.testing.provider import one_byte_each
from vaala.testing.provider_gemini import (
    answer,
    array,
    blocked,
    call,
    counts,
    data,
    error,
    response,
    say,
    stream,
    text,
)
from vaala_protocol.base import decode, encode
from vaala_protocol.content import TextContent
from vaala_protocol.items import Item, UserMessage, decode_item
from vaala_protocol.settings import Usage

KEY = "AIza-test-0123456789abcdef"
SIGNATURES = ("Et0BCtoB/XLI2nw=", "AY89a18a8_Loc2wl-5o")
TOOL = ToolSpec(
    "read.file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)


def said(words: str) -> UserSaid:
    return UserSaid((TextContent(text=words),))


REQUEST = ModelRequest("Be brief.", (TOOL,), b"", (said("hello"),))


@asynccontextmanager
async def rig(model: str = "gemini-3-pro-preview") -> AsyncGenerator[Asked]:
    async with chat_server() as server, open_http({}) as http:
        provider = Provider(
            "google", f"{server.url}/v1beta", api="gemini", key=Secret(KEY), windows={model: 99}
        )
        # Imported here, so that no test has the thread of the first import in it.
        await http.load()
        yield Asked(server, make_client(provider, http).model(model), REQUEST)


async def test_a_request_and_its_answer() -> None:
    async with rig() as r:
        r.server.reply(text("he", "llo", thoughts=["hm"]))
        events = await r.run()
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["he", "llo"]
        assert UsageReport(Usage(input=10, output=5)) in events
        assert (events[0], events[-1]) == (FirstByte(), Finish("stop", "STOP"))
        (request,) = r.server.requests
        assert request.method == "POST"
        path = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
        assert request.path == path
        assert request.json == {
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": legal_name("read.file"),
                            "description": "Read a file.",
                            "parametersJsonSchema": TOOL.parameters,
                        }
                    ]
                }
            ],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        }


async def test_the_key_is_in_a_header_alone() -> None:
    async with rig() as r:
        r.server.reply(text("ok"))
        await r.run()
        (request,) = r.server.requests
        assert request.headers["x-goog-api-key"] == KEY
        assert "authorization" not in request.headers
        assert KEY not in request.path
        assert KEY.encode() not in request.body


async def test_what_a_model_of_this_format_says_of_itself() -> None:
    async with chat_server() as server, open_http({}) as http:
        provider = Provider("google", f"{server.url}/", api="gemini", windows={"m": 9})
        model = client_for(provider, http).model("m")
        assert isinstance(model, GeminiModel)
        assert (model.name, model.api, model.window_tokens) == ("google/m", "gemini", 9)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("tunedModels/x", "/v1beta/tunedModels/x:streamGenerateContent?alt=sse"),
        ("a b?c", "/v1beta/models/a%20b%3Fc:streamGenerateContent?alt=sse"),
    ],
)
async def test_names_of_models_in_the_path(model: str, path: str) -> None:
    async with rig(model) as r:
        r.server.reply(text("ok"))
        await r.run()
        assert r.server.requests[0].path == path


async def test_an_array_where_alt_sse_was_dropped() -> None:
    async with rig() as r:
        r.server.reply(array(response(say("a")), response(say("b"), finish="STOP")))
        events = await r.run()
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "b"]


async def test_one_byte_each_with_keep_alives() -> None:  # B1-1 B1-3
    body = b": ping\r\n\r\n" + data(response(say("你好🦀"))) + data(response(finish="STOP"))
    async with rig() as r:
        r.server.reply(stream(*one_byte_each(body)))
        assert TextDelta("你好🦀") in await r.run()


async def test_names_of_tools_come_back_as_ours() -> None:  # B7-3
    async with rig() as r:
        r.server.reply(answer(call(legal_name("read.file"), path="a")))
        assert CallStart(0, "read.file") in await r.run()


@pytest.mark.parametrize(
    ("reply", "kind", "retryable", "wait_s"),
    [
        (error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
         "auth", False, None),
        (error(403, "PERMISSION_DENIED", "no"), "auth", False, None),
        (error(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of"
               " tokens allowed (8)."), "context_overflow", False, None),
        (error(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in"
               " functionCall parts."), "invalid_request", False, None),  # A7-4
        (error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan"
               " and billing details.", retry_delay="34.4s"), "rate_limit", True, 34.4),
        (error(503, "UNAVAILABLE", "The model is overloaded."), "overloaded", True, None),
        (error(500, "INTERNAL", "An internal error has occurred."), "overloaded", True, None),
        (blocked("PROHIBITED_CONTENT"), "refused", False, None),
        (stream(data(response(say("half")))), "incomplete", True, None),
        (stream(data(response(say("half"))), CUT), "network", True, None),
        (stream(), "incomplete", True, None),
    ],
)  # fmt: skip
async def test_failures(
    reply: Reply, kind: str, retryable: bool, wait_s: float | None
) -> None:  # B2 B4-3
    async with rig() as r:
        r.server.reply(reply)
        failure = await r.fails()
        assert (failure.kind, failure.retryable, failure.retry_after_s) == (kind, retryable, wait_s)
        assert KEY not in failure.message
        assert len(r.server.requests) == 1


async def test_an_unknown_model_is_told_with_what_there_is() -> None:
    listed = [
        {"name": f"models/{name}", "supportedGenerationMethods": [method]}
        for name, method in (("gemini-3-pro", "generateContent"), ("gemini-3-e", "embedContent"))
    ]
    body = encode({"models": listed})
    async with rig() as r:
        r.server.reply(error(404, "NOT_FOUND", "models/x is not found"))
        r.server.reply(Reply((body,), headers=(("content-type", "application/json"),)))
        failure = await r.fails()
        assert "did you mean google/gemini-3-pro?" in failure.message
        assert r.server.requests[1].headers["x-goog-api-key"] == KEY


async def test_a_server_without_json_schema_gets_the_older_form() -> None:
    refused = error(
        400,
        "INVALID_ARGUMENT",
        'Invalid JSON payload received. Unknown name "parametersJsonSchema" at'
        " 'tools[0].function_declarations[0]': Cannot find field.",
    )
    async with rig() as r:
        r.server.reply(refused, text("ok"), text("ok"))
        await r.run()
        await r.run()
        sent = [
            request.json["tools"][0]["functionDeclarations"][0] for request in r.server.requests
        ]
        keys = [sorted(one.keys() - {"name", "description"}) for one in sent]
        assert keys == [["parametersJsonSchema"], ["parameters"], ["parameters"]]
        r.server.reply(refused)
        assert (await r.fails()).kind == "invalid_request"  # and no third time
        assert len(r.server.requests) == 4


async def test_no_first_byte(autojump_clock: trio.abc.Clock) -> None:  # B3-2
    async with rig() as r:
        r.server.reply(stream(STALL))
        failure = await r.fails(replace(REQUEST, deadlines=Deadlines(first_byte_s=7)))
        assert (failure.kind, failure.retryable) == ("network", True)


async def test_silence_after_the_finish_reason(autojump_clock: trio.abc.Clock) -> None:
    async with rig() as r:
        r.server.reply(stream(data(response(say("a"), finish="STOP")), STALL))
        began = trio.current_time()
        assert (await r.run())[-1] == Finish("stop", "STOP")
        assert trio.current_time() - began <= TAIL_S


async def test_a_cut_after_the_finish_reason_is_no_failure() -> None:  # B1-6
    async with rig() as r:
        r.server.reply(stream(data(response(say("a"), finish="STOP", usage=counts(1, 1))), CUT))
        assert (await r.run())[-1] == Finish("stop", "STOP")


async def test_leaving_closes_the_request() -> None:
    async with rig() as r:
        r.server.reply(stream(data(response(say("a"))), STALL))
        async with r.model.stream(REQUEST) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        with trio.fail_after(2):
            await r.server.requests[0].gone.wait()


def items_of(model: Model, events: Sequence[ModelEvent]) -> Answer:
    numbers = iter(range(2, 100))
    place = Place("s", "t", 1, lambda: next(numbers))
    builder = AnswerBuilder(model, place, LiveParts("s", lambda _: None))
    for event in events:
        builder.take(event)
    return builder.answer(partial=False)


def stored(item: Item) -> Item:
    """An item as it is after the log was read again."""
    return decode_item(decode(encode(item)), "s")


async def test_signatures_survive_a_restart() -> None:  # A7-2
    """What the model said goes out again part for part, read from the log."""
    parts = [
        say("thinking", thought=True),
        say("first "),
        say("second", signature=SIGNATURES[0]),
        call(legal_name("read.file"), signature=SIGNATURES[1], path="a"),
        call(legal_name("read.file"), path="b"),
    ]
    async with rig() as r:
        r.server.reply(answer(*parts), text("done"))
        events = await r.run()
        found = items_of(r.model, events)
        asked = UserMessage(
            id="u", at=1, created_at=0, session_id="s", turn_id="t", step=1,
            content=(TextContent(text="hello"),),
        )  # fmt: skip
        items = [stored(item) for item in (asked, *found.items, *found.calls)]
        messages: tuple[Message, ...] = messages_of(items, None)
        await r.run(replace(REQUEST, messages=messages))
        sent: list[dict[str, Any]] = json.loads(r.server.requests[1].body)["contents"]
        replayed = [
            {key: value for key, value in part.items() if key != "functionCall"}
            | ({"call": part["functionCall"]["args"]} if "functionCall" in part else {})
            for part in sent[1]["parts"]
        ]
        assert replayed == [
            {"text": "first "},
            {"text": "second", "thoughtSignature": SIGNATURES[0]},
            {"call": {"path": "a"}, "thoughtSignature": SIGNATURES[1]},
            {"call": {"path": "b"}},
        ]
        assert [one["role"] for one in sent] == ["user", "model", "user"]
        assert len(sent[2]["parts"]) == 2
