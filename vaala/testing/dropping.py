"""`dropping_proxy`: a network that breaks when told, between a client and a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import trio

CHUNK_BYTES = 64 * 1024


class DroppingProxy:
    """Made by `dropping_proxy`. Forwards every byte, until it is told otherwise."""

    def __init__(self, target: tuple[str, int], port: int) -> None:
        self.connections = 0
        """That were made so far."""
        self.bytes_down = 0
        """From the server to clients, over all connections."""
        self._target = target
        self._port = port
        self._open: set[trio.CancelScope] = set()
        self._room: int | None = None
        self._connected = trio.Event()
        self._flows = trio.Event()
        self._flows.set()

    @property
    def address(self) -> str:
        """Where clients connect to."""
        return f"127.0.0.1:{self._port}"

    @property
    def live(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    async def wait_connections(self, count: int) -> None:
        """Wait until so many connections were made."""
        while self.connections < count:
            await self._connected.wait()

    def drop(self) -> None:
        """Cut all connections now. New ones can be made."""
        for scope in self._open:
            scope.cancel()

    def drop_after(self, size: int) -> None:
        """Cut all connections once so many more bytes have come from the server; the last
        message is torn where they end. New ones can be made."""
        self._room = size

    def stall(self) -> None:
        """Forward nothing more, with all connections open: what a sleeping machine looks like."""
        self._flows = trio.Event()

    def flow(self) -> None:
        """Forward again; nothing was lost."""
        self._flows.set()

    async def serve(self, client: trio.SocketStream) -> None:
        """Forward one connection until it is cut or an end of it has gone."""
        self.connections += 1
        self._connected.set()
        self._connected = trio.Event()
        scope = trio.CancelScope()
        self._open.add(scope)
        try:
            with scope:
                async with (
                    client,
                    await trio.open_tcp_stream(*self._target) as server,
                    trio.open_nursery() as nursery,
                ):
                    nursery.start_soon(partial(self._copy, client, server, scope))
                    nursery.start_soon(partial(self._copy, server, client, scope, down=True))
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # an end that has gone takes the other one with it
        finally:
            self._open.discard(scope)

    async def _copy(
        self,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        scope: trio.CancelScope,
        *,
        down: bool = False,
    ) -> None:
        while data := await source.receive_some(CHUNK_BYTES):
            await self._flows.wait()
            part = self._allowed(data) if down else data
            await sink.send_all(part)
            if len(part) < len(data):
                self.drop()
        scope.cancel()

    def _allowed(self, data: bytes | bytearray) -> bytes | bytearray:
        """Count what comes from the server; return what may pass of it."""
        if self._room is not None:
            if len(data) > self._room:
                data, self._room = data[: self._room], None
            else:
                self._room -= len(data)
        self.bytes_down += len(data)
        return data


@asynccontextmanager
async def dropping_proxy(host: str, port: int) -> AsyncGenerator[DroppingProxy]:
    """Listen on a free port of the loopback and forward to ``host`` and ``port``.

    On leaving all connections are cut.
    """
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        listening: tuple[str, int] = listeners[0].socket.getsockname()
        proxy = DroppingProxy((host, port), listening[1])
        nursery.start_soon(trio.serve_listeners, proxy.serve, listeners)
        yield proxy
        nursery.cancel_scope.cancel()
