"""Clients that meet a server: over memory, with virtual time, or over a real WebSocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import trio

from tests.vaala.server.api.serving import Server
from vaala.client import Client
from vaala.client.address import parse_address
from vaala.client.channel import ChannelClosed
from vaala.client.errors import CannotConnect
from vaala.client.finder import Direct, Finder
from vaala.discovery import new_token
from vaala.discovery.environment import client_environment
from vaala.server.connection import serve_connection
from vaala.server.transport.accepting import accept
from vaala.server.transport.front_door import FrontDoor
from vaala.server.transport.guard import Guard, hosts_of
from vaala.server.transport.http.views import make_site
from vaala.server.transport.listening import listen
from vaala.server.wire import PeerInfo, Wire, WireClosed
from vaala.testing import DroppingProxy, dropping_proxy
from vaala_protocol.methods.runtime import ClientInfo


class MemoryChannel:
    """The client's end of a wire in memory, which a test can break."""

    near = True

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.sent: list[bytes] = []

    async def receive(self) -> str | bytes:
        try:
            return await self._wire.receive()
        except WireClosed as closed:
            raise ChannelClosed(closed.code, closed.reason) from None

    async def send(self, message: bytes) -> None:
        self.sent.append(message)
        try:
            await self._wire.send(message)
        except WireClosed as closed:
            raise ChannelClosed(closed.code, closed.reason) from None

    async def check(self) -> None:
        await trio.lowlevel.checkpoint()

    def abort(self) -> None:
        self._wire.abort()


class MemoryFinder:
    """Leads to a server in memory; ``offline`` keeps clients from finding it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.offline: str | None = None
        self.channels: list[MemoryChannel] = []
        self.starts: list[bool] = []
        """What each search was allowed to do."""

    @asynccontextmanager
    async def channel(self, *, start: bool) -> AsyncGenerator[MemoryChannel]:
        self.starts.append(start)
        await trio.lowlevel.checkpoint()
        if self.offline is not None:
            raise CannotConnect(self.offline)
        async with self.server.wire() as wire:
            self.channels.append(MemoryChannel(wire))
            yield self.channels[-1]

    def drop(self) -> None:
        """Break the newest channel."""
        self.channels[-1].abort()


@asynccontextmanager
async def client_of(
    finder: Finder,
    *,
    start: bool = False,
    notices: list[str] | None = None,
    directory: str = "/w",
    environ: Mapping[str, str] = MappingProxyType({}),
) -> AsyncGenerator[Client]:
    """A client that has found its server."""
    heard: list[str] = [] if notices is None else notices
    async with trio.open_nursery() as nursery:
        client = Client(
            nursery,
            finder,
            ClientInfo(name="test", version="0.1.0"),
            lambda wanted: client_environment(
                environ, directory, keys=wanted.keys, forward=wanted.forward
            ),
            start=start,
            on_notice=heard.append,
        )
        await nursery.start(client.connector.run)
        yield client
        nursery.cancel_scope.cancel()


class Door:
    """A server behind a real port, with a proxy before it that drops connections."""

    def __init__(self, token: str, port: int, proxy: DroppingProxy) -> None:
        self.token = token
        self.port = port
        self.proxy = proxy

    def direct(self) -> Finder:
        return Direct(parse_address(f"127.0.0.1:{self.port}"), self.token)

    def through_proxy(self) -> Finder:
        return Direct(parse_address(self.proxy.address), self.token)


class _NoViews:
    async def read(self, params: Any) -> object:
        raise AssertionError(f"nobody asks for {params}")

    def tools(self) -> object:
        raise AssertionError("nobody asks for tools")


@asynccontextmanager
async def door_of(server: Server) -> AsyncGenerator[Door]:
    """Serve on a free port while the block runs."""
    token = new_token()

    async def speak(wire: Wire, peer: PeerInfo) -> None:
        await serve_connection(server.api, wire, peer)

    async with listen(["127.0.0.1"], 0) as listening, trio.open_nursery() as nursery:
        port = listening.addresses[0][1]
        async with dropping_proxy("127.0.0.1", port) as proxy:
            guard = Guard(token, hosts_of(listening.addresses, (proxy.address,)), ())
            front = FrontDoor(guard, speak, lambda: make_site(_NoViews()))
            nursery.start_soon(accept, listening, front.serve)
            yield Door(token, port, proxy)
        nursery.cancel_scope.cancel()
