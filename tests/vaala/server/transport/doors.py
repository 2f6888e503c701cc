"""A front door on a real port, with an echo behind it, and clients for it."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11
import trio
import trio.testing
from trio_websocket import WebSocketConnection, wrap_client_stream

from vaala.discovery import WEBSOCKET_PATH, bearer
from vaala.server.transport.accepting import accept
from vaala.server.transport.front_door import FrontDoor
from vaala.server.transport.guard import Guard, hosts_of
from vaala.server.transport.http.site import Site
from vaala.server.transport.http.views import make_site
from vaala.server.transport.listening import listen
from vaala.server.wire import PeerInfo, Wire, WireClosed
from vaala_protocol.errors import NotFound
from vaala_protocol.methods.base import Request

PATIENCE_S = 300
"""Longer than every limit of the server, so that these are what ends a wait."""
TOKEN = "the-token-of-this-run"
Speak = Callable[[Wire, PeerInfo], Awaitable[None]]


async def echo(wire: Wire, peer: PeerInfo) -> None:
    """Send back what comes; ``crash`` is a bug."""
    while True:
        try:
            message = await wire.receive()
        except WireClosed:
            return
        if message == "crash":
            raise RuntimeError("a bug behind the wire")
        await wire.send(message.encode() if isinstance(message, str) else message)


class FakeViews:
    """Shows what it was asked for."""

    async def read(self, params: Request[Any]) -> object:
        if getattr(params, "name", "") == "crash":
            raise RuntimeError("a bug in a view")
        if getattr(params, "name", "") == "missing":
            raise NotFound("no model 'missing'")
        return {"method": params.method, "params": params}

    def tools(self) -> object:
        return {"tools": []}


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Door:
    port: int
    path: Path | None
    front: FrontDoor
    served: int = 0
    live: int = 0

    async def serve(self, connected: socket.socket, peer: PeerInfo) -> None:
        self.served += 1
        self.live += 1
        try:
            await self.front.serve(connected, peer)
        finally:
            self.live -= 1

    async def quiet(self, besides: int = 0) -> None:
        """Wait until all connections, or all but so many, have ended."""
        with trio.fail_after(PATIENCE_S):
            while self.live > besides:
                await trio.lowlevel.checkpoint()
                await trio.testing.wait_all_tasks_blocked(0.001)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    @asynccontextmanager
    async def websocket(
        self,
        headers: Sequence[tuple[bytes, bytes]] = (),
        *,
        authorization: str = f"Bearer {TOKEN}",
        **options: Any,
    ) -> AsyncGenerator[WebSocketConnection]:
        with_token = [(b"Authorization", authorization.encode()), *headers]
        # Not open_websocket_url: it leaves the socket open when the server closes.
        async with await self.connect() as stream, trio.open_nursery() as nursery:
            client = await wrap_client_stream(
                nursery, stream, self.host, WEBSOCKET_PATH, extra_headers=with_token, **options
            )
            yield client
            await client.aclose()
            nursery.cancel_scope.cancel()

    async def ask(
        self, target: str, method: str = "GET", body: bytes = b"", **more: str
    ) -> Response:
        """Make one request on a connection of its own; underscores in names become dashes."""
        async with await self.connect() as stream:
            return await ask_on(stream, self.host, target, method, body, more)

    async def upgrade(self, *more: str, token: str = TOKEN) -> bytes:
        """Ask for an upgrade that is refused, and return the answer."""
        async with await self.connect() as stream:
            await stream.send_all(upgrade(self.host, *more, token=token))
            return await read_all(stream)

    async def still_serves(self) -> bool:
        """Tell whether a new client gets what it wants, over HTTP and a WebSocket."""
        async with self.websocket() as client:
            await client.send_message("hello")
            if await client.get_message() != "hello":
                return False
        return (await self.ask("/healthz")).status == 200


async def ask_on(
    stream: trio.abc.Stream,
    host: str,
    target: str,
    method: str = "GET",
    body: bytes = b"",
    more: dict[str, str] | None = None,
) -> Response:
    """Make a request on an open connection."""
    headers = {"host": host, "authorization": bearer(TOKEN)}
    if body:
        headers["content-length"] = str(len(body))
    headers |= {name.replace("_", "-"): value for name, value in (more or {}).items()}
    client = h11.Connection(h11.CLIENT)
    request = h11.Request(
        method=method, target=target, headers=[(k, v) for k, v in headers.items() if v != ""]
    )
    data = (client.send(request) or b"") + (
        client.send(h11.Data(data=body)) or b"" if body else b""
    )
    await stream.send_all(data + (client.send(h11.EndOfMessage()) or b""))
    response: h11.Response | None = None
    received = b""
    while True:
        match client.next_event():
            case h11.NEED_DATA:
                client.receive_data(bytes(await stream.receive_some()))
            case h11.Response() as response:
                pass
            case h11.Data(data=part):
                received += bytes(part)
            case _:
                break
    assert response is not None
    found = {name.decode(): value.decode() for name, value in response.headers}
    return Response(response.status_code, found, received)


def site() -> Site:
    return make_site(FakeViews())


@asynccontextmanager
async def open_door(
    speak: Speak = echo, path: Path | None = None, origins: Sequence[str] = ()
) -> AsyncGenerator[Door]:
    """Serve while the block runs."""
    async with listen(["127.0.0.1"], 0, path) as listening, trio.open_nursery() as nursery:
        guard = Guard(TOKEN, hosts_of(listening.addresses, ()), origins)
        door = Door(listening.addresses[0][1], path, FrontDoor(guard, speak, site))
        nursery.start_soon(accept, listening, door.serve)
        yield door
        nursery.cancel_scope.cancel()


def upgrade(host: str, *more: str, token: str = TOKEN) -> bytes:
    """Return an upgrade as a client writes it, with more lines of headers."""
    lines = [
        f"GET {WEBSOCKET_PATH} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        *([f"Authorization: Bearer {token}"] if token else []),
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def read_all(stream: trio.abc.ReceiveStream) -> bytes:
    """Read until the server closes, however it does that."""
    data = b""
    with trio.fail_after(PATIENCE_S):
        try:
            while chunk := await stream.receive_some():
                data += chunk
        except trio.BrokenResourceError:
            pass
    return data


async def read_head(stream: trio.abc.ReceiveStream) -> bytes:
    """Read the head of an answer and what came with it."""
    data = b""
    with trio.fail_after(PATIENCE_S):
        while b"\r\n\r\n" not in data:
            chunk = await stream.receive_some()
            assert chunk, f"closed after {data!r}"
            data += chunk
    return data


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(os.listdir("/dev/fd"))


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living
