"""`chat_server`: a model provider on loopback that says, byte for byte, what a test wants it to.

    async with chat_server() as server:
        server.reply(text("hi"))
        ...                              # a client talks to server.base_url
        assert server.requests[0].json["model"] == "m"

Replies are given in order, one for each request. A reply's body is a sequence of pieces: bytes are
sent at once, as one HTTP chunk; a `trio.Event` is waited for, so that the test has the timing; a
number sleeps; `STALL` is silent until the client goes away; `CUT` breaks the connection. The
helpers that write chat completions are in `vaala.testing.provider_chat`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import trio

from vaala_protocol.base import decode

_HEAD_BYTES_MAX = 64 * 1024
_RECEIVE_BYTES = 64 * 1024


class Pause(Enum):
    STALL = "stall"
    CUT = "cut"


STALL = Pause.STALL
CUT = Pause.CUT
Piece: TypeAlias = bytes | float | trio.Event | Pause


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``headers`` of a name given here replace those that the server would send.

    ``length`` given: the body has a Content-Length instead of HTTP chunks.
    """

    body: tuple[Piece, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/event-stream"),)
    length: int | None = None


@dataclass(slots=True, eq=False)
class Request:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes
    connection: int
    """Numbers the connections from 0: equal numbers mean that one was used again."""
    gone: trio.Event = field(default_factory=trio.Event)
    """Set when the client closed the connection before the answer was complete."""
    answered: trio.Event = field(default_factory=trio.Event)
    """Set when the whole answer was sent."""

    @property
    def json(self) -> Any:
        return decode(self.body)


Answerer: TypeAlias = Callable[[Request], Reply]


class ChatServer:
    """The handle of a running server; see `chat_server`."""

    def __init__(self, port: int, scheme: str = "http") -> None:
        self.port = port
        self.scheme = scheme
        self.requests: list[Request] = []
        self._replies: deque[Reply] = deque()
        self._answerer: Answerer | None = None
        self._arrived = trio.Condition()
        self._connections = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def reply(self, *replies: Reply) -> None:
        """Queue replies for the next requests."""
        self._replies.extend(replies)

    def answer(self, answerer: Answerer) -> None:
        """Answer with ``answerer(request)`` whenever no reply is queued."""
        self._answerer = answerer

    async def wait_requests(self, count: int) -> None:
        """Wait until ``count`` requests have come in all."""
        async with self._arrived:
            while len(self.requests) < count:
                await self._arrived.wait()

    def next_reply(self, request: Request) -> Reply:
        if self._replies:
            return self._replies.popleft()
        if self._answerer is not None:
            return self._answerer(request)
        text = f"no reply is scripted for request {len(self.requests)}: {request.path}"
        return Reply((text.encode(),), status=501, headers=(("content-type", "text/plain"),))

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection until the client closes it."""
        number, self._connections = self._connections, self._connections + 1
        async with stream:
            try:
                await self._serve_requests(_Connection(stream, number))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return

    async def _serve_requests(self, connection: _Connection) -> None:
        while (request := await connection.receive()) is not None:
            async with self._arrived:
                self.requests.append(request)
                self._arrived.notify_all()
            if not await connection.send(self.next_reply(request), request):
                return


@asynccontextmanager
async def chat_server() -> AsyncGenerator[ChatServer]:
    """Serve on a free port of 127.0.0.1; leaving ends every connection."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = ChatServer(listener.socket.getsockname()[1])
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()


class _Connection:
    """HTTP/1.1 for one connection, as much of it as a client of models needs."""

    def __init__(self, stream: trio.abc.Stream, number: int) -> None:
        self._stream = stream
        self._number = number
        self._rest = b""

    async def receive(self) -> Request | None:
        """Return the next request, None when the client has closed."""
        while b"\r\n\r\n" not in self._rest:
            if len(self._rest) > _HEAD_BYTES_MAX or not await self._more():
                return None
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", "0"))
        while len(self._rest) < length:
            if not await self._more():
                return None
        body, self._rest = self._rest[:length], self._rest[length:]
        return Request(method, path, headers, body, self._number)

    async def send(self, reply: Reply, request: Request) -> bool:
        """Send the reply; False when the connection has ended with it.

        The client's close is noticed at once, also while the reply waits or stalls.
        """
        alive = True
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                nonlocal alive
                try:
                    while await self._more():
                        pass
                except trio.BrokenResourceError:
                    pass
                except trio.ClosedResourceError:
                    return
                alive = False
                request.gone.set()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            try:
                alive = await self._send_all(reply)
            except trio.BrokenResourceError:
                alive = False
                request.gone.set()
            else:
                request.answered.set()
            nursery.cancel_scope.cancel()
        return alive

    async def _send_all(self, reply: Reply) -> bool:
        chunked = reply.length is None
        framing = ("transfer-encoding", "chunked") if chunked else ("content-length", reply.length)
        headers = {"x-request-id": "fake"} | dict(reply.headers)
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{n}: {v}" for n, v in headers.items())]
        lines.append(f"{framing[0]}: {framing[1]}")
        await self._stream.send_all("\r\n".join((*lines, "", "")).encode())
        for piece in reply.body:
            match piece:
                case bytes():
                    if piece:
                        await self._stream.send_all(_chunk(piece) if chunked else piece)
                case trio.Event():
                    await piece.wait()
                case Pause.STALL:
                    await trio.sleep_forever()
                case Pause.CUT:
                    await self._stream.aclose()
                    return False
                case _:
                    await trio.sleep(piece)
        if chunked:
            await self._stream.send_all(b"0\r\n\r\n")
        return True

    async def _more(self) -> bool:
        data = bytes(await self._stream.receive_some(_RECEIVE_BYTES))
        self._rest += data
        return bool(data)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def one_byte_each(data: bytes) -> Iterable[bytes]:
    """Cut bytes into single ones: every split of a stream at once."""
    return (data[at : at + 1] for at in range(len(data)))
