"""How a client and its server begin: what is told, what is waited for, and what is final."""

from __future__ import annotations

import pytest
import trio

from tests.vaala.client.fake_link import FakeServer
from tests.vaala.client.meeting import client_of
from vaala.client import Disconnected, limits
from vaala_protocol.errors import (
    BadRequest,
    Failed,
    Incompatible,
    Outdated,
    Overloaded,
    Refused,
    Stopping,
)
from vaala_protocol.methods.runtime import WantedVariables

SHELL = {"PATH": "/bin", "ACME_KEY": "acme", "NODE_ENV": "test", "SECRET": "s"}


@pytest.mark.parametrize(
    "greeting", [None, Overloaded("full"), Stopping("ends"), Failed("bug"), Outdated("newer")]
)
async def test_a_server_that_does_not_greet_now_is_asked_again(
    autojump_clock: object, greeting: Refused | None
) -> None:
    server = FakeServer()
    async with client_of(server) as client:
        server.greetings.append(greeting)
        server.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.status)
            await server.called()
            nursery.cancel_scope.cancel()
    assert server.connections == 3
    assert trio.current_time() < limits.RECONNECT_S


async def test_it_is_given_up_in_the_end(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client:
        server.greetings += [Overloaded("full")] * 1_000
        server.close()
        with pytest.raises(Disconnected, match="full"):
            await client.status()
    assert trio.current_time() >= limits.RECONNECT_S


@pytest.mark.parametrize("greeting", [Incompatible("other major"), BadRequest("no such name")])
async def test_what_no_waiting_mends_is_final(autojump_clock: object, greeting: Refused) -> None:
    server = FakeServer()
    async with client_of(server) as client:
        server.greetings.append(greeting)
        server.close()
        with pytest.raises(Disconnected, match=str(greeting)):
            await client.status()
    assert server.connections == 2


@pytest.mark.parametrize("greeting", [Incompatible("other major"), Outdated("newer")])
async def test_the_first_connection_tells_what_does_not_fit(
    autojump_clock: object, greeting: Refused
) -> None:
    with pytest.RaisesGroup(type(greeting), flatten_subgroups=True):
        async with client_of(FakeServer(greeting)):
            pass
    assert trio.current_time() == 0


async def test_a_first_connection_waits_for_a_busy_server(autojump_clock: object) -> None:
    server = FakeServer(None, Overloaded("full"))
    async with client_of(server):
        assert server.connections == 3


async def test_what_the_configuration_asks_for_is_told_as_well(autojump_clock: object) -> None:
    wanted = WantedVariables(keys=("ACME_KEY", "NO_KEY"), forward=("NODE_ENV", "JAVA_HOME"))
    server = FakeServer(wanted=wanted)
    async with client_of(server, environ=SHELL) as client:
        first, second = server.told
        assert first is not None
        assert second is not None
        assert not first.keys
        assert second.keys == {"ACME_KEY": "acme"}
        assert second.overlay == {**first.overlay, "NODE_ENV": "test", "JAVA_HOME": None}
        assert client.new_environment() is None
        server.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.status)
            await server.called()
            nursery.cancel_scope.cancel()
    assert server.told == [first, second, second], "and at once to the next server"


async def test_a_server_of_another_machine_is_told_nothing_of_this_one(
    autojump_clock: object,
) -> None:
    server = FakeServer(wanted=WantedVariables(keys=("ACME_KEY",)), near=False)
    async with client_of(server, environ=SHELL) as client:
        assert client.new_environment() is None
    assert server.told == [None]


async def test_what_nobody_asks_for_is_not_told(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server, environ=SHELL):
        assert len(server.told) == 1
        assert "SECRET" not in str(server.told)
