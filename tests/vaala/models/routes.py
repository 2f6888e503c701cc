"""What stands between a client and a server: TLS with an authority of our own, and proxies."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
import trustme
from msgspec import Struct, field

from vaala.testing import ChatServer, Reply

HOST = "models.test"
"""A name that no resolver knows: whoever gets there went through the proxy."""


class Authority(Struct, frozen=True):
    ca: trustme.CA

    def write(self, file: Path) -> Path:
        """Write its certificate and return where."""
        self.ca.cert_pem.write_to_path(str(file))
        return file

    @property
    def pem(self) -> str:
        return self.ca.cert_pem.bytes().decode()

    @asynccontextmanager
    async def server(self) -> AsyncGenerator[ChatServer]:
        """Serve models over TLS as `HOST` and as this machine; each request is answered."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.ca.issue_cert(HOST, "127.0.0.1", "localhost").configure_cert(context)
        (plain,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = ChatServer(plain.socket.getsockname()[1], "https")
        server.answer(lambda _: Reply((b"over TLS",)))
        listener = trio.SSLListener(plain, context, https_compatible=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, server.serve, [listener])
            yield server
            nursery.cancel_scope.cancel()


class Proxy(Struct):
    """A proxy that connects to one port of this machine, whatever host it is asked for."""

    port: int
    target: int
    wants: str = ""
    """The credentials, as they stand in the header; empty: none are wanted."""
    heads: list[str] = field(default_factory=list[str])
    """What came before each tunnel."""

    @property
    def asked(self) -> list[str]:
        """The first lines of the requests for a tunnel."""
        return [head.partition("\r\n")[0] for head in self.heads]

    async def serve(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await stream.receive_some()
            if not piece:
                return
            head += piece
        self.heads.append(head.decode())
        if self.wants and self.wants not in head.decode():
            await stream.send_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        async with await trio.open_tcp_stream("127.0.0.1", self.target) as target:
            await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_pump, stream, target)
                await _pump(target, stream)
                nursery.cancel_scope.cancel()


async def _pump(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    try:
        async for piece in source:
            await sink.send_all(piece)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


@asynccontextmanager
async def proxy_to(target: int, wants: str = "") -> AsyncGenerator[Proxy]:
    """Serve a proxy on a free port; leaving ends its tunnels."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy = Proxy(listener.socket.getsockname()[1], target, wants)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, proxy.serve, [listener])
        yield proxy
        nursery.cancel_scope.cancel()
