"""Offers that end while something is under way: nothing of them is left anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.client.fake_link import FakeServer
from tests.vaala.client.meeting import client_of
from vaala.client import Client, limits
from vaala_protocol.errors import NotFound, Overloaded
from vaala_protocol.methods.base import Request
from vaala_protocol.methods.client import (
    ClientOfferParams,
    ClientOfferResult,
    ClientWithdrawParams,
    TerminalExit,
    TerminalOutputResult,
    TerminalStartParams,
)

START = TerminalStartParams(conversation_id="c", command="make", directory="/")


class Screen:
    """Terminals of an editor; ``busy`` holds up the start of one."""

    def __init__(self) -> None:
        self.live: set[str] = set()
        self.started = 0
        self.busy: trio.Event | None = None
        self.stuck = False
        """True: no terminal ends."""

    async def start(
        self,
        command: str,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
    ) -> str:
        if self.busy is not None:
            with trio.CancelScope(shield=True):
                await self.busy.wait()
        self.started += 1
        self.live.add(f"t{self.started}")
        return f"t{self.started}"

    async def output(self, terminal_id: str) -> TerminalOutputResult:
        return TerminalOutputResult(text="")

    async def end(self, terminal_id: str) -> TerminalExit:
        if self.stuck:
            await trio.sleep_forever()
        if terminal_id == "t2":
            raise ValueError("it is gone already")
        self.live.remove(terminal_id)
        return TerminalExit(code=0)


class Holder:
    """Holds an offer in a task until it is let go."""

    def __init__(self, client: Client, nursery: trio.Nursery, **offered: Any) -> None:
        self.scope = trio.CancelScope()
        self.held = False
        self.over = trio.Event()
        nursery.start_soon(self._hold, client, offered)

    async def _hold(self, client: Client, offered: dict[str, Any]) -> None:
        with self.scope:
            async with client.offer("c", **offered):
                self.held = True
                await trio.sleep_forever()
        self.over.set()

    async def end(self) -> None:
        self.scope.cancel()
        await self.over.wait()


def _asked(server: FakeServer) -> list[Request[Any]]:
    return [call.params for call in server.calls]


def _accept(server: FakeServer, offer_id: str, number: int = -1) -> None:
    server.answer(ClientOfferResult(offer_id=offer_id), number)


async def test_an_offer_that_is_given_up_before_its_answer_is_taken_back(
    autojump_clock: object,
) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        first = Holder(client, nursery)
        await server.called(1)
        await first.end()
        second = Holder(client, nursery, terminal=Screen())
        await server.called(2)
        _accept(server, "one", 0)
        await server.called(3)
        assert server.calls[2].params == ClientWithdrawParams(offer_id="one")
        _accept(server, "two", 1)
        await trio.testing.wait_all_tasks_blocked()
        assert second.held
        nursery.cancel_scope.cancel()
    assert [type(one) for one in _asked(server)[:2]] == [ClientOfferParams] * 2


async def test_an_offer_that_is_given_up_while_it_is_made_anew_is_taken_back(
    autojump_clock: object,
) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        first = Holder(client, nursery)
        await server.called(1)
        _accept(server, "one")
        await trio.testing.wait_all_tasks_blocked()
        server.close()
        await server.called(2)
        await first.end()
        _accept(server, "two", 1)
        await server.called(3)
        assert server.calls[2].params == ClientWithdrawParams(offer_id="two")
        second = Holder(client, nursery, terminal=Screen())
        await server.called(4)
        assert getattr(server.calls[3].params, "terminal", False), "and not what stood before"
        _accept(server, "three", 3)
        await trio.testing.wait_all_tasks_blocked()
        assert second.held
        nursery.cancel_scope.cancel()


async def test_an_offer_that_is_refused_raises_and_leaves_room(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        for count in (1, 2):

            async def offer() -> None:
                with pytest.raises(NotFound, match="no such"):
                    async with client.offer("c"):
                        pass

            nursery.start_soon(offer)
            await server.called(count)
            server.tell(server.peer.refuse(server.calls[-1].id, NotFound("no such")))
            await trio.testing.wait_all_tasks_blocked()


async def _start_terminals(server: FakeServer, count: int) -> None:
    for _ in range(count):
        server.tell(server.peer.ask(START)[1])
    await trio.testing.wait_all_tasks_blocked()


async def _offered(server: FakeServer, client: Client, nursery: trio.Nursery) -> Screen:
    screen = Screen()
    Holder(client, nursery, terminal=screen)
    await server.called(1)
    _accept(server, "one")
    await trio.testing.wait_all_tasks_blocked()
    return screen


async def test_terminals_end_with_the_connection_whose_server_knew_them(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        screen = await _offered(server, client, nursery)
        await _start_terminals(server, 3)
        assert screen.live == {"t1", "t2", "t3"}
        server.close()
        await server.called(2)
        assert screen.live == {"t2"}
        assert "it is gone already" in caplog.text
        nursery.cancel_scope.cancel()


async def test_terminals_end_with_their_offer(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        screen = await _offered(server, client, nursery)
        await _start_terminals(server, 1)
        nursery.cancel_scope.cancel()
    assert screen.live == set()


async def test_a_terminal_that_starts_as_its_offer_ends_is_ended(autojump_clock: object) -> None:
    server = FakeServer()
    screen = Screen()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        holder = Holder(client, nursery, terminal=screen)
        await server.called(1)
        _accept(server, "one")
        await trio.testing.wait_all_tasks_blocked()
        screen.busy = trio.Event()
        await _start_terminals(server, 1)
        await holder.end()
        screen.busy.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (screen.started, screen.live) == (1, set())
        assert isinstance(server.answers[-1].error, NotFound)


async def test_a_terminal_that_does_not_end_holds_nobody_up_for_long(
    autojump_clock: object,
) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        screen = await _offered(server, client, nursery)
        await _start_terminals(server, 1)
        screen.stuck = True
        nursery.cancel_scope.cancel()
    assert trio.current_time() <= limits.CLOSE_S + limits.TERMINAL_END_S + limits.PING_S


async def test_terminals_are_bounded(autojump_clock: object) -> None:
    server = FakeServer()
    async with client_of(server) as client, trio.open_nursery() as nursery:
        screen = await _offered(server, client, nursery)
        for _ in range(limits.TERMINALS_MAX // 32 + 1):
            await _start_terminals(server, 32)
        assert len(screen.live) == limits.TERMINALS_MAX
        assert isinstance(server.answers[-1].error, Overloaded)
        nursery.cancel_scope.cancel()
