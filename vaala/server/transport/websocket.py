"""`serve_websocket`: one upgraded connection, from the answer to the upgrade to its end.

Traps of trio-websocket that are kept away from everybody else here: what a client sends may make
its reader raise; an upgrade that it does not like never returns; it says nothing to a client that
breaks the protocol; a send that is cancelled halfway corrupts the stream; pongs are not checked
unless one waits for them; its size limit counts characters.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream
from wsproto.utilities import LocalProtocolError

from vaala.server.transport import limits
from vaala.server.transport.framing import FramedStream, cut_reason
from vaala.server.transport.head import Head
from vaala.server.transport.stream import ClientStream
from vaala.server.wire import Wire, WireClosed
from vaala_protocol.close_codes import FAULT, NORMAL, NOT_UTF8, PROTOCOL_ERROR, TOO_BIG
from vaala_protocol.limits import MESSAGE_BYTES_MAX

log = logging.getLogger(__name__)

Speak: TypeAlias = Callable[[Wire], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]


class WebSocketWire(Wire):
    """The wire of one WebSocket."""

    def __init__(
        self, connection: WebSocketConnection, framed: FramedStream, stream: ClientStream
    ) -> None:
        self._connection = connection
        self._framed = framed
        self._stream = stream

    async def receive(self) -> str | bytes:
        try:
            message = await self._connection.get_message()
        except ConnectionClosed:
            raise await self._ended() from None
        self._framed.message_delivered()
        if _is_too_big(message):
            text = f"a message has at most {MESSAGE_BYTES_MAX} bytes"
            with trio.move_on_after(limits.CLOSE_S):
                await self.close(TOO_BIG, text)
            raise WireClosed(TOO_BIG, text)
        return message

    async def send(self, *messages: bytes) -> None:
        try:
            await self._framed.send_texts(messages)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise self._closed() from None

    def abort(self) -> None:
        # Behind a close frame the owner of the stream lingers, so that the client gets to see it.
        if not self._framed.close_sent:
            self._stream.abort()

    async def close(self, code: int, reason: str) -> None:
        await self._connection.aclose(code, cut_reason(reason))

    def _closed(self) -> WireClosed:
        why = self._connection.closed
        return WireClosed() if why is None else WireClosed(why.code, why.reason or "")

    async def _ended(self) -> WireClosed:
        """Return how it ended; a client that broke the protocol is told so."""
        ended = self._closed()
        if ended.code in (PROTOCOL_ERROR, NOT_UTF8):
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._framed.send_close(ended.code, ended.reason)
        return ended


_Opened: TypeAlias = tuple[WebSocketConnection, WebSocketWire, ClientStream]


async def serve_websocket(stream: ClientStream, head: Head, speak: Speak, headers: Headers) -> None:
    """Answer an upgrade and let ``speak`` run the connection.

    Returns when the connection is over; the stream is left for the caller to linger on and close.
    ``headers`` go into the answer. An error of ``speak`` closes the connection with 1011 and a
    trace id that the log has, too. Never raises but for a cancel, which aborts the stream.
    """
    framed = FramedStream(stream, head.raw, head.behind)
    try:
        async with trio.open_nursery() as nursery:
            opened = await _upgraded(nursery, stream, framed, headers)
            if opened is not None:
                await _run(nursery, opened, speak)
            nursery.cancel_scope.cancel()
    except* (ConnectionClosed, trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the client has gone
    except* LocalProtocolError as errors:
        # What a client sends behind its close frame makes trio-websocket's reader raise this.
        log.debug("a client went on after the end: %s", errors.exceptions[0])


async def _upgraded(
    nursery: trio.Nursery, stream: ClientStream, framed: FramedStream, headers: Headers
) -> _Opened | None:
    """Return the open connection; None when trio-websocket has refused the upgrade itself."""

    async def give_up() -> None:
        await framed.closed.wait()
        scope.cancel()

    with trio.move_on_after(limits.HANDSHAKE_S) as scope:
        nursery.start_soon(give_up)
        request = await wrap_server_stream(
            nursery,
            framed,
            max_message_size=MESSAGE_BYTES_MAX,
            receive_buffer_size=limits.FRAMES_BYTES,
        )
        connection = await request.accept(extra_headers=headers)
        return connection, WebSocketWire(connection, framed, stream), stream
    return None


async def _run(nursery: trio.Nursery, opened: _Opened, speak: Speak) -> None:
    connection, wire, stream = opened
    nursery.start_soon(_ping, connection)
    nursery.start_soon(_reap, stream)
    code, reason = NORMAL, ""
    try:
        await speak(wire)
    except* WireClosed:
        pass
    except* Exception as errors:
        trace = secrets.token_hex(4)
        log.error("a connection failed (trace %s)", trace, exc_info=errors)
        code, reason = FAULT, f"a bug in the server; its log has it as trace {trace}"
    with trio.move_on_after(limits.CLOSE_S):
        await wire.close(code, reason)


async def _ping(connection: WebSocketConnection) -> None:
    """Ask the client for a sign of life again and again.

    A cancel may cut a ping in two; by then the connection is over.
    """
    while True:
        await trio.sleep(limits.PING_PERIOD_S)
        await connection.ping()


async def _reap(stream: ClientStream) -> None:
    """Abort the stream of a client that is dead (H2-2)."""
    silent_s = 0.0
    while silent_s < limits.SILENCE_S_MAX:
        await trio.sleep(limits.SILENCE_S_MAX / limits.SILENCE_LOOKS)
        silent_s = trio.current_time() - stream.last_sign()
    log.info("a client has been silent for %g s", silent_s)
    stream.abort()


def _is_too_big(message: str | bytes) -> bool:
    """Tell whether a message has too many bytes: trio-websocket has counted its characters."""
    if isinstance(message, bytes) or len(message) * 4 <= MESSAGE_BYTES_MAX:
        return len(message) > MESSAGE_BYTES_MAX
    return len(message.encode()) > MESSAGE_BYTES_MAX
