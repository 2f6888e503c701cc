"""Requests: what is wrong is answered, what is many is bounded, what belongs together in order."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import Client, is_turn, machine, server, settled
from tests.vaala.server.memory_wires import memory_wires
from vaala.server import limits
from vaala.server.connection import serve_connection
from vaala.server.wire import PeerInfo, Wire, WireClosed
from vaala_protocol.content import TextContent
from vaala_protocol.errors import BadRequest, Failed, NotFound, Unreadable
from vaala_protocol.items import UserMessage
from vaala_protocol.limits import REQUESTS_MAX
from vaala_protocol.methods.catalog import ConfigGetParams, ModelListParams
from vaala_protocol.methods.conversation import (
    ConversationCreateParams,
    ConversationListParams,
)
from vaala_protocol.methods.runtime import ClientEnvironment
from vaala_protocol.methods.session import (
    SessionInterruptParams,
    SessionItemsParams,
    SessionSendParams,
)
from vaala_storage.errors import StorageError

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "runtime/initialize",
    "params": {"client": {"name": "raw", "version": "1"}},
}  # fmt: skip


def request(id: object, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


async def ask(wire: Wire, message: object) -> Any:
    await wire.send(message if isinstance(message, bytes) else json.dumps(message).encode())
    return json.loads(await wire.receive())


async def test_the_first_request_says_who_it_is(autojump_clock: object) -> None:
    async with server() as served, served.wire() as wire:
        early = await ask(wire, {"jsonrpc": "2.0", "id": "a", "method": "model/list"})
        assert early["id"] == "a"
        assert "runtime/initialize comes first" in early["error"]["message"]
        greeting = await ask(wire, HELLO)
        assert greeting["result"]["server"]["instance"] == "run-1"
        again = await ask(wire, {**HELLO, "id": 2})
        assert "already" in again["error"]["message"]
        models = await ask(wire, {"jsonrpc": "2.0", "id": None, "method": "model/list"})
        assert models["id"] is None
        assert models["result"]["default"] == "scripted"


async def test_who_does_not_say_who_it_is_is_let_go(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with server() as served, served.wire() as silent, served.wire() as polite:
        await ask(polite, HELLO)
        with pytest.raises(WireClosed):
            await silent.receive()
        assert trio.current_time() == limits.HELLO_S
        await trio.sleep(10 * limits.HELLO_S)
        assert "result" in await ask(polite, request(6, "model/list"))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 10_000, -32700),
        (b"[]", -32600),
        (b"42", -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": "no/such"}, -32601),
        ({"jsonrpc": "2.0", "id": 5, "method": "model/get", "params": {"name": 7}}, -32602),
        ({"jsonrpc": "2.0", "id": 5, "method": "model/get", "params": {"name": "x"}}, -32001),
    ],
)
async def test_what_is_wrong_is_answered_and_the_connection_lives(
    autojump_clock: object, message: object, code: int
) -> None:
    async with server() as served, served.wire() as wire:
        await ask(wire, HELLO)
        assert (await ask(wire, message))["error"]["code"] == code
        assert "result" in await ask(wire, {"jsonrpc": "2.0", "id": 6, "method": "model/list"})


async def test_a_batch_is_answered_as_one_and_what_is_watched_comes_behind_it(
    autojump_clock: object,
) -> None:
    model = script({"say": "x" * 50, "chunk": 1})
    async with (
        server(model, executors=machine()) as served,
        served.client() as client,
        served.wire() as wire,
    ):
        talk = await client.create()
        await ask(wire, HELLO)
        await client.send(talk, "go")
        batch = [
            {"jsonrpc": "2.0", "id": "watch", "method": "conversation/subscribe",
             "params": {"conversationId": talk}},
            {"jsonrpc": "2.0", "method": "model/list"},
            {"jsonrpc": "2.0", "id": "bad", "method": "model/get"},
            {"jsonrpc": "2.0", "id": "list", "method": "conversation/list"},
        ]  # fmt: skip
        answers = await ask(wire, batch)
        assert [one["id"] for one in answers] == ["watch", "bad", "list"]
        seq = answers[0]["result"]["snapshot"]["seq"]
        event = json.loads(await wire.receive())
        assert event["params"]["frame"]["first"] == seq + 1


async def test_a_fault_is_told_with_a_trace_and_logged_under_it(
    autojump_clock: object, errors_logged: list[str]
) -> None:
    """H8-4: the connection lives."""
    async with server() as served, served.client() as client:

        async def broken() -> None:
            raise ZeroDivisionError("a secret detail")

        served.keeper.before = broken
        with pytest.raises(Failed) as failed:
            await client.call(ModelListParams())
        (logged,) = errors_logged
        assert failed.value.trace in logged
        assert "secret" not in str(failed.value)

        async def full() -> None:
            raise StorageError("no space")

        served.keeper.before = full
        with pytest.raises(Unreadable, match="no space"):
            await client.call(ModelListParams())

        async def well() -> None:
            pass

        served.keeper.before = well
        served.keeper.values["a.yaml", ()] = object()
        with pytest.raises(Failed):
            await client.call(ConfigGetParams(file="a.yaml"))
        assert (await client.call(ConversationListParams())).rows == ()


async def test_requests_in_work_are_bounded(autojump_clock: object) -> None:
    async with server() as served, served.wire() as wire:
        working, most, gate = 0, 0, trio.Event()

        async def slow() -> None:
            nonlocal working, most
            working += 1
            most = max(most, working)
            await gate.wait()
            working -= 1
            raise NotFound("nothing")

        served.keeper.before = slow
        await ask(wire, HELLO)
        for number in range(REQUESTS_MAX):
            await wire.send(request(100 + number, "model/list"))
        await settled()
        assert working == limits.BULKY_ANSWERS_MAX
        refused = await ask(wire, request(7, "runtime/reload"))
        assert refused["error"]["data"]["code"] == "overloaded"
        for _ in range(2 * limits.NOTES_IN_WORK_MAX):
            await wire.send(b'{"jsonrpc": "2.0", "method": "runtime/reload"}')
        gate.set()
        answered = {json.loads(await wire.receive())["id"] for _ in range(REQUESTS_MAX)}
        assert answered == {100 + number for number in range(REQUESTS_MAX)}
        assert most <= limits.BULKY_ANSWERS_MAX + 1  # reloads are in one lane


async def test_what_a_client_does_not_read_is_bounded(autojump_clock: object) -> None:
    async with server() as served, served.wire() as wire:
        made = 0

        async def count() -> None:
            nonlocal made
            made += 1

        served.keeper.before = count
        served.keeper.values["big.yaml", ()] = "x" * 1_000_000
        await ask(wire, HELLO)
        for number in range(100):
            await wire.send(request(number, "config/get", file="big.yaml"))
        await settled()
        # One is in the wire, one is being sent, and some were begun while there was room.
        assert made <= limits.OUTBOX_BYTES_MAX // 1_000_000 + limits.BULKY_ANSWERS_MAX + 2
        for _ in range(100):
            assert len(await wire.receive()) > 1_000_000
        assert made == 100


def test_what_a_client_asks_of_a_conversation_is_done_in_order() -> None:
    """H4-5, H5-5: sends land in the order in which they were sent, for everybody."""

    async def story(random: Random) -> None:
        model = script({"say": "ok", "pace_s": 0.1})
        async with (
            server(model, executors=machine()) as served,
            served.client("one") as one,
            served.client("two") as two,
        ):
            talk = await one.create()

            async def send_all(client: Client, who: str) -> list[str]:
                ids = []
                for number in range(5):
                    text = f"{who}{number}"
                    params = SessionSendParams(
                        conversation_id=talk, client_id=text, content=(TextContent(text=text),)
                    )
                    ids.append(await client.begin(params))
                    for _ in range(random.randrange(3)):
                        await trio.lowlevel.checkpoint()
                return [(await client.answer_of(id)).client_id for id in ids]

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all, one, "a")
                nursery.start_soon(send_all, two, "b")
            await trio.sleep(100)
            page = await two.call(SessionItemsParams(conversation_id=talk, limit=100))
            said = [
                block.text
                for item in page.items
                if isinstance(item, UserMessage)
                for block in item.content
                if isinstance(block, TextContent)
            ]
            for who in "ab":
                assert [text for text in said if text[0] == who] == [f"{who}{n}" for n in range(5)]

    run_seeds(story, 20)


def test_an_interrupt_is_never_overtaken_by_what_was_sent_after_it() -> None:
    """H4-5: prompt, interrupt, prompt in one packet: the first is interrupted, the second runs."""

    async def story(random: Random) -> None:
        model = script({"say": "on and on", "chunk": 1, "pace_s": 1.0})
        async with (
            server(model, executors=machine()) as served,
            served.client() as client,
        ):
            talk = await client.create()
            await client.watch(talk)
            first = SessionSendParams(
                conversation_id=talk, client_id="1", content=(TextContent(text="one"),)
            )
            second = SessionSendParams(
                conversation_id=talk, client_id="2", content=(TextContent(text="two"),)
            )
            ids = [
                await client.begin(params)
                for params in (first, SessionInterruptParams(conversation_id=talk), second)
            ]
            _, interrupted, _ = [await client.answer_of(id) for id in ids]
            assert interrupted.interrupted
            await client.hear(is_turn("completed"))
            ended = [
                state
                for note in client.heard
                for state in ("interrupted", "completed")
                if is_turn(state)(note)
            ]
            assert ended == ["interrupted", "completed"]

    run_seeds(story, 20)


async def test_an_environment_comes_from_this_machine_alone(autojump_clock: object) -> None:
    environment = ClientEnvironment(
        directory="/home/me", keys={"A_KEY": "s"}, overlay={"PATH": "/b"}
    )
    async with server(script({"say": "ok"}), executors=machine()) as served:
        with pytest.RaisesGroup(
            pytest.RaisesExc(BadRequest, match="own machine"), flatten_subgroups=True
        ):
            async with served.client(
                environment=environment, peer=PeerInfo("10.0.0.7:1", local=False)
            ):
                pass
        async with served.client(environment=environment) as client:
            talk = await client.create()
            await client.send(talk, "go")
            conversation = await served.runtime.conversation(talk)
            assert conversation.environment.keys == {"A_KEY": "s"}
            other = ClientEnvironment(directory="/other", keys={"A_KEY": "t"})
            await client.send(talk, "again", environment=other)
            assert conversation.environment.keys == {"A_KEY": "t"}
            for bad in (
                ClientEnvironment(directory="relative"),
                ClientEnvironment(directory="/", overlay={"A=B": "x"}),
                ClientEnvironment(directory="/", keys={"A": "x\0"}),
            ):
                with pytest.raises(BadRequest):
                    await client.send(talk, "more", environment=bad)


async def test_relative_paths_are_refused(autojump_clock: object) -> None:
    async with server(executors=machine()) as served, served.client() as client:
        with pytest.raises(BadRequest, match="not absolute"):
            await client.call(ConversationCreateParams(directory="here"))


async def test_a_thousand_connections_leave_nothing_behind(autojump_clock: object) -> None:
    """H6-2."""
    async with server(script({"say": "ok"}), executors=machine()) as served:
        async with served.client() as client:
            talk = await client.create()
            await client.send(talk, "go")
            await settled()
        await settled()
        before = trio.lowlevel.current_statistics().tasks_living
        for number in range(1_000):
            async with served.wire() as wire:
                if number % 3:
                    await ask(wire, HELLO)
                    subscribe = {"conversationId": talk}
                    message = {
                        "jsonrpc": "2.0", "id": 2, "method": "conversation/subscribe",
                        "params": subscribe,
                    }  # fmt: skip
                    if number % 3 == 1:
                        await ask(wire, message)
                    else:
                        await wire.send(json.dumps(message).encode())
        await settled()
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert len(served.api.clients) == 0
        assert (await served.runtime.conversation(talk)).stream.subscribers == 0


async def test_the_end_of_the_server_is_told_behind_the_last_answers(
    autojump_clock: object,
) -> None:
    async with server() as served, trio.open_nursery() as nursery:
        theirs, ours = memory_wires()
        scope = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await serve_connection(served.api, ours, PeerInfo("memory", local=True))

        nursery.start_soon(serve)
        await ask(theirs, HELLO)
        served.api.shutdown = lambda reason: scope.cancel()
        answer = await ask(theirs, request(2, "runtime/shutdown"))
        assert answer == {"jsonrpc": "2.0", "id": 2, "result": {}}
        with pytest.raises(WireClosed) as closed:
            await theirs.receive()
        assert (closed.value.code, closed.value.reason) == (1001, "the server is closing")


async def test_a_client_that_reads_nothing_does_not_hold_up_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H8-5."""
    async with server(script({"say": "x" * 9_000}), executors=machine()) as served:
        theirs, ours = memory_wires(buffer_bytes=100)
        served.keeper.values["big.yaml", ()] = "x" * 1_000_000
        with trio.move_on_after(30) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    serve_connection, served.api, ours, PeerInfo("memory", local=True)
                )
                await ask(theirs, HELLO)
                for number in range(20):
                    await theirs.send(request(number, "config/get", file="big.yaml"))
        assert scope.cancelled_caught
        assert trio.current_time() <= 30 + limits.CLOSE_S
        with pytest.raises(WireClosed):
            await theirs.receive()
