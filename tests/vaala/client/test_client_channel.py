"""Opening a channel: whoever listens must prove who it is before anything is said to it."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio_websocket import WebSocketRequest, serve_websocket

from tests.vaala.client.meeting import door_of
from tests.vaala.server.api.serving import server
from vaala.client.address import Tcp, Unix, is_near, parse_address
from vaala.client.channel import Channel, ChannelClosed, open_channel
from vaala.client.errors import CannotConnect
from vaala.discovery import AUTHORIZATION_HEADER, PROOF_HEADER, challenge_of, proof

Handler = Callable[[trio.SocketStream], Any]


@asynccontextmanager
async def _listening(handler: Handler) -> AsyncGenerator[Tcp]:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        yield Tcp("127.0.0.1", listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


async def _reason(address: Tcp | Unix, token: str = "token", handshake_s: float = 5.0) -> str:
    with pytest.raises(CannotConnect) as caught:
        async with open_channel(address, token, handshake_s=handshake_s):
            pass
    return str(caught.value)


async def test_nobody_listens(tmp_path: Path) -> None:
    assert "nobody listens" in await _reason(Tcp("127.0.0.1", 1))
    assert "nobody listens" in await _reason(Unix(str(tmp_path / "none")))


async def test_a_stranger_that_says_nothing_is_left_soon() -> None:
    async def hang(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with _listening(hang) as address:
        assert "said nothing within 0.05 s" in await _reason(address, handshake_s=0.05)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"220 mail ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"\xff" * 5_000,
    ],
)
async def test_a_stranger_that_talks_otherwise_is_told_apart(said: bytes) -> None:
    async def talk(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(said)
        await stream.aclose()

    async with _listening(talk) as address:
        assert str(address) in await _reason(address)


def _with_its_own_token(challenge: str, given: str) -> str:
    return proof("another token", challenge)


def _from_what_it_was_given(challenge: str, given: str) -> str:
    return proof(given.removeprefix("Bearer ").removeprefix("Vaala "), challenge)


def _what_it_was_given(challenge: str, given: str) -> str:
    return given.rpartition(".")[2]


@pytest.mark.parametrize(
    "answer",
    [
        lambda challenge, given: "",
        lambda challenge, given: "00",
        _with_its_own_token,
        _from_what_it_was_given,
        _what_it_was_given,
    ],
)
async def test_a_websocket_without_the_right_proof_hears_nothing(
    answer: Callable[[str, str], str],
) -> None:
    heard: list[Any] = []

    async def accept(request: WebSocketRequest) -> None:
        heard.append(request.headers)
        given = dict(request.headers)[AUTHORIZATION_HEADER.encode()].decode()
        value = answer(challenge_of(given) or "", given)
        more = [(PROOF_HEADER.encode(), value.encode())] if value else []
        connection = await request.accept(extra_headers=more)
        with suppress(Exception):
            heard.append(await connection.get_message())

    async with trio.open_nursery() as nursery:
        door = await nursery.start(serve_websocket, accept, "127.0.0.1", 0, None)
        reason = await _reason(Tcp("127.0.0.1", door.port), "s3cret")
        assert "does not know the token" in reason
        nursery.cancel_scope.cancel()
    assert len(heard) == 1
    assert "s3cret" not in str(heard)


async def test_a_server_with_another_token_refuses_us() -> None:
    async with server() as srv, door_of(srv) as door:
        reason = await _reason(Tcp("127.0.0.1", door.port), "wrong")
        assert "401" in reason
        assert "wrong" not in reason


async def test_the_right_server_is_taken_and_its_end_is_noticed() -> None:
    async def hear(channel: Channel) -> None:
        with pytest.raises(ChannelClosed):
            await channel.receive()

    async with server() as srv, door_of(srv) as door:
        address = parse_address(door.proxy.address)
        async with open_channel(address, door.token) as channel:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(hear, channel)
                await channel.check()
                assert channel.near
                door.proxy.drop()
            with pytest.raises(ChannelClosed):
                await channel.send(b"{}")


class _Connected:
    """A socket whose other end is somewhere, or gone."""

    def __init__(self, peer: str | None) -> None:
        self.family = socket.AF_INET6 if peer and ":" in peer else socket.AF_INET
        self.socket = self
        self._peer = peer

    def getpeername(self) -> tuple[str, int]:
        if self._peer is None:
            raise OSError(errno.ENOTCONN, "not connected")
        return self._peer, 8790


@pytest.mark.parametrize(
    ("peer", "near"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.7", False),
        ("12.7.0.1", False),
        ("2001:db8::1", False),
        (None, False),
    ],
)
def test_another_machine_is_known(peer: str | None, near: bool) -> None:
    assert is_near(cast("Any", _Connected(peer))) is near


async def test_an_error_of_the_block_comes_as_it_is() -> None:
    async with server() as srv, door_of(srv) as door:
        with pytest.raises(KeyError, match="mine"):
            async with open_channel(Tcp("127.0.0.1", door.port), door.token):
                raise KeyError("mine")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8790", Tcp("127.0.0.1", 8790)),
        ("[::1]:1", Tcp("::1", 1)),
        ("ws://localhost:80/api/v1/vaala", Tcp("localhost", 80)),
        ("unix:/run/v.sock", Unix("/run/v.sock")),
    ],
)
def test_addresses_are_read(text: str, address: Tcp | Unix) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":1", "host:0", "host:65536", "h:-1", "unix:"]
)
def test_other_texts_are_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|socket"):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:8790", "[::1]:1", "unix:/run/v.sock"])
def test_addresses_are_written_as_they_are_read(text: str) -> None:
    assert str(parse_address(text)) == text
