"""Requests: answered once, repeated only where that is safe, and never waited for for ever."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.client.fake_link import FakeServer
from tests.vaala.client.meeting import client_of
from vaala.client import CannotConnect, Disconnected, limits
from vaala_protocol.errors import Busy, NotFound, TimedOut
from vaala_protocol.methods import client as served
from vaala_protocol.methods.base import Done
from vaala_protocol.methods.catalog import ModelResolveParams
from vaala_protocol.methods.conversation import (
    ConversationCreateParams,
    ConversationDeleteParams,
    ConversationGetParams,
)
from vaala_protocol.methods.runtime import ReloadParams, RuntimeStatusParams, ShutdownParams
from vaala_protocol.methods.session import SessionInterruptParams, SessionSendParams
from vaala_protocol.pages import ConversationRow
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo

ROW = ConversationRow(info=ConversationInfo(id="c", created_at=1, updated_at=1))


async def test_a_refusal_is_raised_as_what_it_is(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:

        async def ask() -> None:
            with pytest.raises(Busy, match="a turn runs"):
                await client.ask(ShutdownParams())

        nursery.start_soon(ask)
        await server.called()
        server.tell(server.peer.refuse(server.calls[0].id, Busy("a turn runs")))


@pytest.mark.parametrize(
    "params",
    [
        ConversationGetParams(conversation_id="c"),
        SessionSendParams(conversation_id="c", client_id="k", content=()),
        ConversationCreateParams(directory="/w", client_id="k"),
        ModelResolveParams(),
    ],
)
async def test_what_can_be_repeated_is_asked_again(autojump_clock: object, params: Any) -> None:
    # H5-3: a send carries the id that makes the server know it again
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.ask, params)
        await server.called(1)
        server.close()
        await server.called(2)
        assert server.calls[0].params == server.calls[1].params
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "params",
    [
        ConversationDeleteParams(conversation_id="c"),
        ConversationCreateParams(directory="/w"),
        SessionInterruptParams(conversation_id="c"),
        ReloadParams(),
    ],
)
async def test_what_may_have_been_done_is_not_asked_again(
    autojump_clock: object, params: Any
) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:

        async def ask() -> None:
            with pytest.raises(Disconnected, match="not known what was done") as caught:
                await client.ask(params)
            assert not caught.value.outcome_known

        nursery.start_soon(ask)
        await server.called(1)
        server.close()
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("scripted:play.yaml", "scripted:/w/play.yaml"),
        ("scripted:../play.yaml", "scripted:/play.yaml"),
        ("scripted:/other/play.yaml", "scripted:/other/play.yaml"),
        ("scripted:", "scripted:"),
        ("scripted", "scripted"),
        ("openai/scripted:x", "openai/scripted:x"),
        (None, None),
    ],
)
async def test_a_script_lies_where_the_client_is(
    autojump_clock: object, model: str | None, sent: str | None
) -> None:
    server = FakeServer()
    settings = Settings(model=model, effort="low")
    async with client_of(server, directory="/w") as client, trio.open_nursery() as nursery:
        talk = client.conversation("c")
        nursery.start_soon(partial(client.create_conversation, settings=settings))
        nursery.start_soon(partial(talk.send, "go", settings=settings))
        nursery.start_soon(talk.configure, settings)
        await server.called(3)
        nursery.cancel_scope.cancel()
    for call in server.calls:
        assert getattr(call.params, "settings", None) == Settings(model=sent, effort="low")


async def test_what_was_never_sent_is_sent_on_the_next_connection(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        server.close()
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(client.ask, ReloadParams())
        await server.called(1)
        assert server.connections == 2
        nursery.cancel_scope.cancel()


async def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(
    autojump_clock: object,
) -> None:
    server = FakeServer()
    async with client_of(server) as client:
        with pytest.raises(TimedOut, match="runtime/reload"):
            await client.ask(ReloadParams(), timeout_s=5)
        assert trio.current_time() < limits.REQUEST_S


async def test_a_late_answer_and_a_cancelled_question_disturb_nobody(
    autojump_clock: object,
) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        with trio.move_on_after(1):
            await client.ask(ReloadParams())
        found: list[Any] = []

        async def get() -> None:
            found.append(await client.get("c"))

        nursery.start_soon(get)
        await server.called(2)
        server.answer(Done(), 0)
        server.answer(ROW, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert found == [ROW]
        assert server.connections == 1


async def test_a_server_that_gives_no_sign_of_life_is_left(autojump_clock: object) -> None:
    # H2-2, from the client's side
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        server.lives = False
        nursery.start_soon(client.status)
        await server.called(1)
        await server.called(2)
        assert server.connections == 2
        assert trio.current_time() < limits.PING_PERIOD_S + limits.PING_S + 1
        nursery.cancel_scope.cancel()


async def test_requests_are_bounded_and_wait_for_their_turn(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        for _ in range(limits.REQUESTS_MAX + 10):
            nursery.start_soon(client.get, "c")
        await trio.testing.wait_all_tasks_blocked()
        assert len(server.calls) == limits.REQUESTS_MAX
        server.answer(ROW, 0)
        await trio.testing.wait_all_tasks_blocked()
        assert len(server.calls) == limits.REQUESTS_MAX + 1
        nursery.cancel_scope.cancel()


async def test_a_server_that_takes_nothing_counts_as_gone(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client:
        server.reads = False
        for _ in range(limits.OUTGOING_MESSAGES_MAX + 2):
            with trio.move_on_after(0.001):
                await client.ask(RuntimeStatusParams())
        with trio.fail_after(30):  # pauses between connections are drawn at random
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.get, "c")
                await server.called(1)
                nursery.cancel_scope.cancel()
        assert server.connections == 2


async def test_a_server_that_was_stopped_is_not_started_again(autojump_clock: object) -> None:
    searches: list[tuple[float, bool]] = []

    class Stopped(FakeServer):
        def channel(self, *, start: bool) -> Any:
            searches.append((trio.current_time(), start))
            if self.connections:
                raise CannotConnect("nobody listens")
            return super().channel(start=start)

    server = Stopped()
    async with client_of(server, start=True) as client:
        server.close(1001)
        with pytest.raises(Disconnected, match="nobody listens") as caught:
            await client.status()
        assert caught.value.outcome_known
    assert searches[0][1]
    assert {may_start for _, may_start in searches[1:]} == {False}
    assert searches[-1][0] >= limits.STOPPED_S
    pauses = [later[0] - sooner[0] for sooner, later in itertools.pairwise(searches)]
    assert max(pauses) <= limits.RECONNECT_MAX_S


async def test_a_crashed_server_is_started_again_for_a_while(autojump_clock: object) -> None:
    searches: list[bool] = []

    class Gone(FakeServer):
        def channel(self, *, start: bool) -> Any:
            searches.append(start)
            if self.connections:
                raise CannotConnect("it does not start")
            return super().channel(start=start)

    server = Gone()
    async with client_of(server, start=True) as client:
        server.close()
        with pytest.raises(Disconnected, match="it does not start"):
            await client.status()
    assert set(searches) == {True}
    assert trio.current_time() >= limits.RECONNECT_S
    assert len(searches) < 100


async def test_the_first_connection_fails_at_once(autojump_clock: object) -> None:
    class Nobody(FakeServer):
        def channel(self, *, start: bool) -> Any:
            raise CannotConnect("nobody listens")

    with pytest.RaisesGroup(CannotConnect, flatten_subgroups=True):
        async with client_of(Nobody()):
            pass
    assert trio.current_time() == 0


async def test_what_the_server_asks_is_answered_whatever_happens(autojump_clock: object) -> None:
    # Nothing is offered: each request is refused, and the connection lives on.
    server = FakeServer()
    asks: list[Callable[[], Any]] = [
        lambda: served.FileReadParams(conversation_id="c", path="/p"),
        lambda: served.TerminalEndParams(terminal_id="t"),
    ]
    async with client_of(server):
        for make in asks:
            server.tell(server.peer.ask(make())[1])
        await trio.testing.wait_all_tasks_blocked()
        assert [type(answer.error) for answer in server.answers] == [NotFound, NotFound]
