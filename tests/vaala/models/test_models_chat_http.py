"""The chat-completions client against a real HTTP server on loopback."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from tests.vaala.models.asking import Asked
from vaala.models.base import (
    AssistantSaid,
    CallEnd,
    CallPart,
    CallResult,
    Deadlines,
    Finish,
    FirstByte,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    TextDelta,
    ToolSpec,
    UserSaid,
)
from vaala.models.chat.model import ChatClient, ChatModel
from vaala.models.http import open_http
from vaala.models.limits import TAIL_S
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala.testing import CUT, STALL, Reply, chat_server
from vaala.testing.provider_chat import (
    DONE,
    call,
    chunk,
    document,
    error,
    stream,
    text,
    tool_calls,
    usage_chunk,
)
from vaala_protocol.content import TextContent

KEY = "sk-test-0123456789abcdef"
TOOL = ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {}})


def said(words: str) -> UserSaid:
    return UserSaid((TextContent(text=words),))


REQUEST = ModelRequest("Be brief.", (TOOL,), b"", (said("hello"),))


@asynccontextmanager
async def rig(**environ: str) -> AsyncGenerator[Asked]:
    async with chat_server() as server, open_http(environ) as http:
        provider = Provider("fake", server.base_url, key=Secret(KEY), windows={"m": 99})
        # Imported here, so that no test has the thread of the first import in it.
        await http.load()
        yield Asked(server, ChatModel(ChatClient(provider, http), "m"), REQUEST)


async def test_a_request_and_its_answer() -> None:
    async with rig() as r:
        r.server.reply(text("he", "llo"))
        events = await r.run()
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["he", "llo"]
        assert events[-1] == Finish("stop", "stop")
        (request,) = r.server.requests
        assert (request.method, request.path) == ("POST", "/v1/chat/completions")
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["accept-encoding"] == "identity"
        assert request.json == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hello"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "read_file",
                        "description": "Read a file.",
                        "parameters": {"type": "object", "properties": {}},
                    },
                }
            ],
        }


async def test_history_goes_out_as_it_was_encoded() -> None:
    async with rig() as r:
        r.server.reply(text("ok"))
        asked = AssistantSaid("", calls=(CallPart("c" * 32, "read_file", '{"path":"a"}'),))
        result = CallResult("c" * 32, "read_file", (TextContent(text="x"),))
        history = b",".join([r.model.encode([said("one"), asked]), r.model.encode([result])])
        await r.run(replace(REQUEST, history=history, tools=()))
        body = r.server.requests[0].json
        assert [message["role"] for message in body["messages"]] == [
            "system", "user", "assistant", "tool", "user",
        ]  # fmt: skip
        assert "tools" not in body  # B7-4


async def test_a_connection_is_used_again() -> None:
    async with rig() as r:
        r.server.reply(tool_calls(call("read_file", path="a")), text("done"))
        first = await r.run()
        await r.run()
        assert [e.arguments for e in first if isinstance(e, CallEnd)] == ['{"path":"a"}']
        assert [request.connection for request in r.server.requests] == [0, 0]


async def test_stream_options_refused_once_are_never_sent_again() -> None:
    async with rig() as r:
        refusal = error(400, "Unknown parameter: 'stream_options'.", code="unknown_parameter")
        r.server.reply(refusal, text("a"), text("b"))
        assert TextDelta("a") in await r.run()
        assert TextDelta("b") in await r.run()
        assert ["stream_options" in request.json for request in r.server.requests] == [
            True, False, False,
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request"), (401, "auth"), (402, "billing"), (403, "auth"),
        (404, "invalid_request"), (422, "invalid_request"), (302, "invalid_request"),
    ],
)  # fmt: skip
async def test_a_refusal_costs_one_request(status: int, kind: str) -> None:  # B4-3
    async with rig() as r:
        r.server.reply(error(status, f"no, {KEY} is bad"))
        failure = await r.fails()
        assert (failure.kind, failure.retryable, failure.status) == (kind, False, status)
        assert [one.method for one in r.server.requests].count("POST") == 1
        assert KEY not in failure.message
        assert failure.__cause__ is None


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ([("retry-after", "7")], 7.0),  # B4-1
        ([("retry-after-ms", "1500"), ("retry-after", "2")], 1.5),
        ([("date", "Mon, 30 Nov 2026 10:00:00 GMT"),
          ("retry-after", "Mon, 30 Nov 2026 10:01:30 GMT")], 90.0),
        ([("retry-after", "soon")], None),
    ],
)  # fmt: skip
async def test_retry_after(headers: list[tuple[str, str]], wait_s: float | None) -> None:
    async with rig() as r:
        r.server.reply(error(429, "slow down", headers=headers))
        failure = await r.fails()
        assert (failure.kind, failure.retryable) == ("rate_limit", True)
        assert failure.retry_after_s == wait_s


@pytest.mark.parametrize("status", [500, 502, 503, 529])
async def test_a_server_in_trouble_can_be_tried_again(status: int) -> None:  # B4-4
    async with rig() as r:
        r.server.reply(document(b"<html><title>Bad gateway</title>", status=status))
        failure = await r.fails()
        assert (failure.kind, failure.retryable) == ("overloaded", True)
        assert "Bad gateway" in failure.message


async def test_a_web_page_is_no_answer() -> None:  # B2-4
    async with rig() as r:
        r.server.reply(document(b"<html>log in</html>", content_type="text/html"))
        failure = await r.fails()
        assert (failure.kind, failure.retryable) == ("network", False)


async def test_a_document_that_was_asked_for_as_a_stream() -> None:
    async with rig() as r:
        body = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
        r.server.reply(document(body))
        assert await r.run() == [FirstByte(), TextDelta("hi"), Finish("stop", "stop")]


async def test_a_broken_connection_is_told_after_what_came() -> None:  # A2-1
    async with rig() as r:
        r.server.reply(stream(chunk({"content": "half"}), CUT))
        async with running(r) as out:
            pass
        assert out[:2] == [FirstByte(), TextDelta("half")]
        failure = out[-1]
        assert isinstance(failure, ModelFailure)
        assert (failure.kind, failure.retryable) == ("network", True)
        assert f"127.0.0.1:{r.server.port}" in failure.message


async def test_a_connection_that_breaks_after_the_finish_is_fine() -> None:  # B1-6
    async with rig() as r:
        r.server.reply(stream(chunk({"content": "x"}), chunk(finish="stop"), CUT))
        assert (await r.run())[-1] == Finish("stop", "stop")


async def test_no_server() -> None:
    async with rig() as r:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        port = listener.socket.getsockname()[1]
        await listener.aclose()
        async with open_http({}) as http:
            gone = Provider("gone", f"http://127.0.0.1:{port}/v1")
            failure = await Asked(r.server, ChatModel(ChatClient(gone, http), "m"), REQUEST).fails()
        assert (failure.kind, failure.retryable) == ("network", False)
        assert "nothing listens there" in failure.message


async def test_a_key_that_is_no_header_is_not_shown() -> None:
    async with chat_server() as server, open_http({}) as http:
        for key in ("secret\nkey-123456", "schlüssel-1234"):
            provider = Provider("fake", server.base_url, key=Secret(key))
            failure = await Asked(
                server, ChatModel(ChatClient(provider, http), "m"), REQUEST
            ).fails()
            assert failure.kind == "invalid_request"
            assert "key-123456" not in failure.message
            assert "1234" not in failure.message
        assert server.requests == []


async def test_loopback_goes_past_the_proxy() -> None:  # B10-1
    dead = "http://127.0.0.1:1"
    async with rig(HTTP_PROXY=dead, HTTPS_PROXY=dead, ALL_PROXY=dead) as r:
        r.server.reply(text("direct"))
        assert TextDelta("direct") in await r.run()


async def test_leaving_early_closes_the_request() -> None:
    async with rig() as r:
        r.server.reply(stream(chunk({"content": "x"}), STALL), text("next"))
        async with r.model.stream(REQUEST) as events:
            await anext(events)
        await r.server.requests[0].gone.wait()
        assert TextDelta("next") in await r.run()


async def _stalled(r: Asked, scope: trio.CancelScope, seen: list[ModelEvent]) -> None:
    with scope:
        async with r.model.stream(REQUEST) as events:
            async for event in events:
                seen.append(event)


@pytest.mark.parametrize("body", [(STALL,), (chunk({"content": "x"}), STALL)])
async def test_cancel_in_a_stall_closes_the_socket_at_once(  # B3-2
    body: tuple[bytes, ...], mock_clock: trio.testing.MockClock
) -> None:
    async with rig() as r, trio.open_nursery() as nursery:
        r.server.reply(Reply(body))
        scope, seen = trio.CancelScope(), list[ModelEvent]()
        nursery.start_soon(_stalled, r, scope, seen)
        await r.server.wait_requests(1)
        await trio.testing.wait_all_tasks_blocked(0.02)
        scope.cancel()
        await r.server.requests[0].gone.wait()
        assert trio.current_time() == mock_clock.current_time()
        assert not any(isinstance(event, Finish) for event in seen)


QUICK = Deadlines(connect_s=5, first_byte_s=60, silence_s=30, progress_s=300)


@asynccontextmanager
async def running(r: Asked) -> AsyncIterator[list[ModelEvent | ModelFailure]]:
    """Run a call beside the test; what it gives, a failure last, is in the list."""
    out: list[ModelEvent | ModelFailure] = []

    async def run() -> None:
        try:
            async with r.model.stream(replace(REQUEST, deadlines=QUICK)) as events:
                async for event in events:
                    out.append(event)
        except ModelFailure as failure:
            out.append(failure)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await r.server.wait_requests(1)
        await trio.testing.wait_all_tasks_blocked(0.02)
        yield out


async def pass_time(clock: trio.testing.MockClock, seconds: float) -> None:
    clock.jump(seconds)
    await trio.testing.wait_all_tasks_blocked(0.02)


async def test_no_first_byte(mock_clock: trio.testing.MockClock) -> None:  # B3-2
    async with rig() as r:
        gate = trio.Event()
        r.server.answer(lambda request: Reply((gate, STALL)))
        async with running(r) as out:
            await pass_time(mock_clock, 59.9)
            assert out == []
            await pass_time(mock_clock, 0.2)
            (failure,) = out
        assert isinstance(failure, ModelFailure)
        assert (failure.kind, failure.retryable) == ("network", True)
        assert failure.message == "fake: no first byte within 60 s"
        await r.server.requests[0].gone.wait()


async def test_silence_in_the_middle(mock_clock: trio.testing.MockClock) -> None:  # B3-1
    async with rig() as r:
        r.server.reply(stream(chunk({"content": "a"}), chunk({"content": "b"}), STALL))
        async with running(r) as out:
            await pass_time(mock_clock, 29.9)
            assert not isinstance(out[-1], ModelFailure)
            await pass_time(mock_clock, 0.2)
        failure = out[-1]
        assert isinstance(failure, ModelFailure)
        assert failure.message == "fake: silent for 30 s in the middle of the answer"
        await r.server.requests[0].gone.wait()


async def test_slow_but_alive_is_never_cut(mock_clock: trio.testing.MockClock) -> None:  # B3-3
    async with rig() as r:
        gates = [trio.Event() for _ in range(15)]
        slow = [piece for gate in gates for piece in (gate, chunk({"content": "x"}))]
        r.server.reply(stream(chunk({"content": "x"}), *slow, chunk(finish="stop"), DONE))
        async with running(r) as out:
            for gate in gates:
                await pass_time(mock_clock, 20)
                gate.set()
                await trio.testing.wait_all_tasks_blocked(0.02)
        assert out.count(TextDelta("x")) == 16
        assert out[-1] == Finish("stop", "stop")


async def test_keep_alives_are_life_but_no_progress(  # B1-3
    mock_clock: trio.testing.MockClock,
) -> None:
    async with rig() as r:
        gates = [trio.Event() for _ in range(20)]
        pings = [piece for gate in gates for piece in (gate, b": PROCESSING\n\n")]
        r.server.reply(stream(chunk({"content": "x"}), *pings, STALL))
        async with running(r) as out:
            for gate in gates[:14]:
                await pass_time(mock_clock, 20)
                gate.set()
                await trio.testing.wait_all_tasks_blocked(0.02)
            assert not isinstance(out[-1], ModelFailure)
            await pass_time(mock_clock, 20.1)
        failure = out[-1]
        assert isinstance(failure, ModelFailure)
        assert failure.message == "fake: nothing but keep-alives for 300 s"


async def test_a_finished_answer_waits_only_a_moment_for_its_end(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with rig() as r:
        r.server.reply(stream(chunk({"content": "x"}), chunk(finish="stop"), usage_chunk(), STALL))
        async with running(r) as out:
            assert not any(isinstance(event, Finish) for event in out)
            await pass_time(mock_clock, TAIL_S + 0.1)
            await pass_time(mock_clock, 1)
        assert out[-1] == Finish("stop", "stop")


async def test_no_connection_in_time(mock_clock: trio.testing.MockClock) -> None:
    # A listener whose queue is full answers nothing, as a host behind a firewall.
    listener = trio.socket.socket()
    await listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    host, port = listener.getsockname()
    fillers = [trio.socket.socket() for _ in range(3)]
    out: list[ModelFailure] = []

    async def fill(filler: trio.socket.SocketType) -> None:
        await filler.connect((host, port))

    async with open_http({}) as http, trio.open_nursery() as nursery:
        await http.load()
        for filler in fillers:
            nursery.start_soon(fill, filler)
        await trio.testing.wait_all_tasks_blocked(0.05)
        provider = Provider("far", f"http://127.0.0.1:{port}/v1", deadlines=QUICK)
        model = ChatModel(ChatClient(provider, http), "m")

        async def run() -> None:
            with pytest.raises(ModelFailure) as caught:
                async with model.stream(REQUEST):
                    pass
            out.append(caught.value)

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert out == []
        await pass_time(mock_clock, 5.1)
        nursery.cancel_scope.cancel()
    for one in (*fillers, listener):
        one.close()
    assert out[0].message == f"far: no connection to http://127.0.0.1:{port} within 5 s"


async def test_many_calls_at_once_share_the_client() -> None:
    async with rig() as r:
        r.server.answer(lambda request: text("ok"))
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(r.run)
        assert len(r.server.requests) == 50


async def test_names_and_window() -> None:
    async with rig() as r:
        assert (r.model.name, r.model.provider, r.model.api) == ("fake/m", "fake", "chat")
        assert r.model.window_tokens == 99
        assert r.model.deadlines == Deadlines()
