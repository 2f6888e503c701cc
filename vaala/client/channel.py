"""`Channel`: the two-way road of whole messages to a server, and the one over a WebSocket.

The WebSocket is our own and short: frames are read where they arrive (`vaala.client.frames`), so
that many in one piece of bytes cost one wake-up, and no task stands between the socket and `Link`.
With trio-websocket there is one task more, each message is passed on by it, and a client
takes a third longer to import (measured: 120 and 85 ms).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import trio

from vaala.client import limits
from vaala.client.address import Address, Tcp, is_near, open_stream
from vaala.client.errors import CannotConnect, NoAnswer
from vaala.client.frames import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    ProtocolFault,
    close_frame,
    close_reason,
    frame,
)
from vaala.client.upgrade import Accepted, HungUp, NotWebSocket, Rejected, upgrade
from vaala.discovery import (
    AUTHORIZATION_HEADER,
    PROOF_HEADER,
    WEBSOCKET_PATH,
    client_proof,
    is_proof,
    new_challenge,
)
from vaala_protocol.base import Malformed, decode
from vaala_protocol.close_codes import NORMAL
from vaala_protocol.limits import ANSWER_BYTES_MAX

log = logging.getLogger(__name__)

_NO_CLOSE = 1006
"""Stands for the code of a connection that ended without a close frame; RFC 6455, 7.4.1."""


class ChannelClosed(Exception):
    """Nothing comes or goes any more."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason or f"closed with code {code}")
        self.code = code
        self.reason = reason


class Channel(Protocol):
    """One task receives and one sends, at the same time."""

    @property
    def near(self) -> bool:
        """The server is on this machine."""
        ...

    async def receive(self) -> str | bytes:
        """Return the next message. Raises `ChannelClosed`. Cancel: nothing is lost.

        A message that has come already is returned without giving way to other tasks; how many
        can be is bounded by `limits.RECEIVE_BYTES`.
        """
        ...

    async def send(self, message: bytes) -> None:
        """Send UTF-8 as one message. Raises `ChannelClosed`. Cancel: it may be sent half; then
        the channel is of no more use."""
        ...

    async def check(self) -> None:
        """Return when the server has shown that it lives. Raises `ChannelClosed`."""
        ...


class WebSocketChannel:
    """See `Channel`; `receive` must be called for pings to be answered and `check` to return."""

    def __init__(self, stream: trio.abc.Stream, behind: bytes, *, near: bool) -> None:
        """``behind`` came behind the answer to the upgrade."""
        self.near = near
        self._stream = stream
        self._frames = FrameReader(ANSWER_BYTES_MAX, behind)
        self._sending = trio.Lock()
        self._closed: ChannelClosed | None = None
        self._close_sent = False
        self._pings = 0
        self._ponged = trio.Event()
        self._asked: bytes | None = None
        """The newest ping that was not answered yet: the others need no answer (5.5.3)."""
        self._ping_came = trio.Event()

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            self._check_open()
            try:
                message = self._frames.next()
            except ProtocolFault as fault:
                raise await self._fail(fault) from None
            if message is None:
                await self._read()
            elif message.kind == CLOSE:
                raise await self._answer_close(message.data)
            elif message.kind == PING:
                self._asked = message.data
                self._ping_came.set()
            elif message.kind == PONG:
                if message.data == b"%d" % self._pings:
                    self._ponged.set()
            else:
                return message.data

    async def send(self, message: bytes) -> None:
        await self._send(frame(TEXT, message))

    async def check(self) -> None:
        self._pings += 1
        self._ponged = trio.Event()
        await self._send(frame(PING, b"%d" % self._pings))
        await self._ponged.wait()
        self._check_open()

    async def answer_pings(self) -> None:
        """Run while the channel is used: whoever reads must not wait until he can write."""
        with suppress(ChannelClosed):
            while True:
                await self._ping_came.wait()
                self._ping_came = trio.Event()
                if self._asked is not None:
                    data, self._asked = self._asked, None
                    await self._send(frame(PONG, data))

    async def close(self) -> None:
        """Say that it is over and wait until the server says so, too. Cancel: not at all."""
        with suppress(ChannelClosed):
            await self._send_close(NORMAL, "")
            while True:
                await self.receive()

    async def _read(self) -> None:
        try:
            data = await self._stream.receive_some(limits.RECEIVE_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            data = b""
        if not data:
            raise self._end(_NO_CLOSE, "")
        self._frames.feed(data)

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            self._check_open()
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise self._end(_NO_CLOSE, "") from None

    async def _send_close(self, code: int, reason: str) -> None:
        if not self._close_sent:
            self._close_sent = True
            await self._send(close_frame(code, reason))

    async def _answer_close(self, payload: bytes) -> ChannelClosed:
        """Say the same (5.5.1), if that goes at once: the server may have stopped reading."""
        code, reason = close_reason(payload)
        await self._last_word(code if payload else NORMAL, reason)
        return self._end(code, reason)

    async def _fail(self, fault: ProtocolFault) -> ChannelClosed:
        log.info("the server breaks the protocol: %s", fault.reason)
        await self._last_word(fault.code, fault.reason)
        return self._end(fault.code, fault.reason)

    async def _last_word(self, code: int, reason: str) -> None:
        with trio.move_on_after(limits.CLOSE_S), suppress(ChannelClosed):
            await self._send_close(code, reason)

    def _end(self, code: int, reason: str) -> ChannelClosed:
        if self._closed is None:
            self._closed = ChannelClosed(code, reason)
            self._ponged.set()
        return ChannelClosed(self._closed.code, self._closed.reason)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ChannelClosed(self._closed.code, self._closed.reason)


@asynccontextmanager
async def open_channel(
    address: Address, token: str, *, handshake_s: float = limits.HANDSHAKE_S
) -> AsyncGenerator[WebSocketChannel]:
    """Connect to a server and make sure that it knows the token, as its record says.

    Nothing but the upgrade is sent before that, and the token itself never. Raises
    `CannotConnect`, within `limits.CONNECT_S` and ``handshake_s``. When the block is left the
    connection is closed, within `limits.CLOSE_S`.
    """
    failure: Exception | None = None
    async with await _connected(address) as stream:
        near = is_near(stream)
        accepted = await _upgraded(stream, address, token, handshake_s)
        channel = WebSocketChannel(stream, accepted.behind, near=near)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.answer_pings)
            try:
                yield channel
                with trio.move_on_after(limits.CLOSE_S):
                    await channel.close()
            except Exception as error:  # raised below, bare: the nursery would wrap it
                failure = error
            nursery.cancel_scope.cancel()
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
    stream: trio.SocketStream, address: Address, token: str, handshake_s: float
) -> Accepted:
    challenge = new_challenge()
    accepted: Accepted | None = None
    with trio.move_on_after(handshake_s):
        try:
            accepted = await upgrade(
                stream,
                str(address) if isinstance(address, Tcp) else "localhost",
                WEBSOCKET_PATH,
                {AUTHORIZATION_HEADER: client_proof(token, challenge)},
            )
        except Rejected as rejected:
            said = _message(rejected.body)[:200]
            raise CannotConnect(
                f"what listens at {address} refuses us with HTTP status {rejected.status}: {said}"
            ) from rejected
        except HungUp as error:
            raise CannotConnect(
                f"what listens at {address} is no server of ours: it hung up"
            ) from error
        except NotWebSocket as error:
            raise CannotConnect(f"what listens at {address} speaks no WebSocket") from error
    if accepted is None:
        raise NoAnswer(f"what listens at {address} said nothing within {handshake_s:g} s")
    if not is_proof(accepted.headers.get(PROOF_HEADER, ""), token, challenge):
        raise CannotConnect(f"what listens at {address} does not know the token of the server")
    return accepted


def _message(body: bytes) -> str:
    """Return what a server of ours says in a refusal; of anything else the whole text."""
    with suppress(Malformed):
        match decode(body):
            case {"error": {"message": str(message)}}:
                return message
            case _:
                pass
    return body[:200].decode("utf-8", "replace").strip()
