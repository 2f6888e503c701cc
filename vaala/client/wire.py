"""`Wire`: the two-way road of whole messages to a server, and the one over a WebSocket."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    wrap_client_stream,
)

from vaala.client import limits
from vaala.client.address import Address, Tcp, is_near, open_stream
from vaala.client.errors import CannotConnect, NoAnswer
from vaala.discovery import (
    AUTHORIZATION_HEADER,
    PROOF_HEADER,
    WEBSOCKET_PATH,
    client_proof,
    is_proof,
    new_challenge,
)
from vaala_protocol.base import Malformed, decode
from vaala_protocol.limits import ANSWER_BYTES_MAX

log = logging.getLogger(__name__)


class WireClosed(Exception):
    """Nothing comes or goes any more."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason or f"closed with code {code}")
        self.code = code
        self.reason = reason


class Wire(Protocol):
    """One task receives and one sends, at the same time."""

    @property
    def near(self) -> bool:
        """The server is on this machine."""
        ...

    async def receive(self) -> str | bytes:
        """Return the next message. Raises `WireClosed`. Cancel: nothing is lost."""
        ...

    async def send(self, message: bytes) -> None:
        """Send UTF-8 as one message. Raises `WireClosed`. Cancel: it may be sent half; then the
        wire is of no more use."""
        ...

    async def check(self) -> None:
        """Return when the server has shown that it lives. Raises `WireClosed`."""
        ...


class WebSocketWire:
    """See `Wire`."""

    def __init__(self, connection: WebSocketConnection, *, near: bool) -> None:
        self._connection = connection
        self.near = near

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.get_message()
        except ConnectionClosed as error:
            raise _closed(error) from None

    async def send(self, message: bytes) -> None:
        try:
            await self._connection.send_message(message.decode())
        except ConnectionClosed as error:
            raise _closed(error) from None

    async def check(self) -> None:
        try:
            await self._connection.ping()
        except ConnectionClosed as error:
            raise _closed(error) from None


class _Watched(trio.abc.Stream):
    """A stream that tells when nothing comes any more: trio-websocket waits for the answer of
    its upgrade even then."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.near = is_near(stream)
        self.ended = trio.Event()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        try:
            data = await self._stream.receive_some(max_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.ended.set()
            raise
        if not data:
            self.ended.set()
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()


@asynccontextmanager
async def open_wire(
    address: Address, token: str, *, handshake_s: float = limits.HANDSHAKE_S
) -> AsyncGenerator[WebSocketWire]:
    """Connect to a server and make sure that it knows the token, as its record says.

    Nothing but the upgrade is sent before that, and the token itself never. Raises
    `CannotConnect`, within `limits.CONNECT_S` and ``handshake_s``. When the block is left the
    connection is closed, within `limits.CLOSE_S`.
    What trio-websocket's reader stumbles over ends the connection and nothing else.
    """
    stream = _Watched(await _connected(address))
    # What is left when the reader raises while the upgrade is under way.
    failure: Exception | None = CannotConnect(f"what listens at {address} speaks no WebSocket")
    async with stream:
        try:
            async with trio.open_nursery() as nursery:
                try:
                    connection = await _upgraded(nursery, stream, address, token, handshake_s)
                    failure = None
                    yield WebSocketWire(connection, near=stream.near)
                    with trio.move_on_after(limits.CLOSE_S):
                        await connection.aclose()
                except Exception as error:  # raised below, bare: the nursery would wrap it
                    failure = error
                nursery.cancel_scope.cancel()
        except* ConnectionRejected as rejected:
            failure = CannotConnect(_rejection(address, rejected))
        except* Exception as broken:
            # Not of the block, whose errors do not come here: trio-websocket's reader raises
            # what its parsers say to a peer that breaks the protocol.
            log.info("the connection to %s broke: %s", address, broken.exceptions[0])
    if failure is not None:
        raise failure


async def _connected(address: Address) -> trio.SocketStream:
    with trio.move_on_after(limits.CONNECT_S):
        try:
            return await open_stream(address)
        except OSError as error:
            why = error.strerror or str(error)
            raise CannotConnect(f"nobody listens at {address}: {why}") from error
    raise NoAnswer(f"{address} did not take a connection within {limits.CONNECT_S:g} s")


async def _upgraded(
    nursery: trio.Nursery, stream: _Watched, address: Address, token: str, handshake_s: float
) -> WebSocketConnection:
    challenge = new_challenge()
    headers = [(AUTHORIZATION_HEADER.encode(), client_proof(token, challenge).encode())]
    connection: WebSocketConnection | None = None
    with trio.move_on_after(handshake_s) as scope:
        async with trio.open_nursery() as waiting:
            waiting.start_soon(_cancel_at, stream.ended, waiting.cancel_scope)
            connection = await wrap_client_stream(
                nursery,
                stream,  # type: ignore[arg-type]  # any stream will do
                host=str(address) if isinstance(address, Tcp) else "localhost",
                resource=WEBSOCKET_PATH,
                extra_headers=headers,
                message_queue_size=limits.INCOMING_MESSAGES_MAX,
                max_message_size=ANSWER_BYTES_MAX,
                receive_buffer_size=limits.RECEIVE_BYTES,
            )
            waiting.cancel_scope.cancel()
    if connection is None:
        if scope.cancelled_caught:
            raise NoAnswer(f"what listens at {address} said nothing within {handshake_s:g} s")
        raise CannotConnect(f"what listens at {address} is no server of ours: it hung up")
    given = dict(connection.handshake_headers).get(PROOF_HEADER.encode(), b"")
    if not is_proof(given.decode("latin-1"), token, challenge):
        raise CannotConnect(f"what listens at {address} does not know the token of the server")
    return connection


async def _cancel_at(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _closed(error: ConnectionClosed) -> WireClosed:
    if error.reason is None:
        return WireClosed(1006, "")
    return WireClosed(error.reason.code, error.reason.reason or "")


def _rejection(address: Address, rejected: BaseExceptionGroup[ConnectionRejected]) -> str:
    first: BaseException = rejected
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, ConnectionRejected)
    said = _message(first.body or b"")[:200]
    return f"what listens at {address} refuses us with HTTP status {first.status_code}: {said}"


def _message(body: bytes) -> str:
    """Return what a server of ours says in a refusal; of anything else the whole text."""
    with suppress(Malformed):
        match decode(body):
            case {"error": {"message": str(message)}}:
                return message
            case _:
                pass
    return body[:200].decode("utf-8", "replace").strip()
