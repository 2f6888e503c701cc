"""WebSockets at the front door: messages, sizes, ends, dead clients."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream

from tests.vaala.server.transport.doors import (
    TOKEN,
    Speak,
    echo,
    open_door,
    read_head,
    site,
    upgrade,
)
from tests.vaala.server.transport.frames import frame, opened
from vaala.discovery import WEBSOCKET_PATH
from vaala.server.transport import limits
from vaala.server.transport.front_door import FrontDoor
from vaala.server.transport.guard import Guard
from vaala.server.wire import PeerInfo, Wire, WireClosed
from vaala_protocol.limits import MESSAGE_BYTES_MAX

TEXT, PING, PONG, CLOSE = 0x1, 0x9, 0xA, 0x8
MIB = 1024 * 1024


@asynccontextmanager
async def paired(speak: Speak) -> AsyncGenerator[trio.SocketStream]:
    """Serve one end of a socket pair and give the other: what is sent is there at once, so a
    clock that jumps when nothing can happen never jumps too far."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    front = FrontDoor(Guard(TOKEN, ["x"]), speak, site)
    client = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
    async with client, trio.open_nursery() as nursery:
        nursery.start_soon(front.serve, ours, PeerInfo("pair", local=True))
        yield client
        nursery.cancel_scope.cancel()


async def connected(client: trio.SocketStream, nursery: trio.Nursery) -> WebSocketConnection:
    headers = [(b"Authorization", f"Bearer {TOKEN}".encode())]
    return await wrap_client_stream(nursery, client, "x", WEBSOCKET_PATH, extra_headers=headers)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 5 * MIB])
async def test_a_message_of_any_size_goes_both_ways(size: int) -> None:  # H8-3
    async with open_door() as door, door.websocket(max_message_size=16 * MIB) as client:
        await client.send_message("é" * (size // 2) + "x" * (size % 2))
        answer = await client.get_message()
        assert len(answer.encode()) == size  # type: ignore[union-attr] # a text message is a str


@pytest.mark.parametrize("unit", ["x", "é"], ids=["trio-websocket counts", "we count bytes"])
async def test_a_message_that_is_too_large_is_refused_with_a_reason(unit: str) -> None:  # H8-3
    async with open_door() as door:
        count = MESSAGE_BYTES_MAX // len(unit.encode()) + 1
        async with door.websocket() as client:
            await client.send_message(unit * count)
            with pytest.raises(ConnectionClosed) as closed:
                await client.get_message()
        assert closed.value.reason is not None
        assert closed.value.reason.code == 1009
        assert str(MESSAGE_BYTES_MAX) in str(closed.value.reason.reason)
        await door.quiet()
        assert await door.still_serves()


async def test_the_largest_message_is_taken() -> None:  # H8-3
    sizes: list[int] = []

    async def measure(wire: Wire, peer: PeerInfo) -> None:
        sizes.append(len(await wire.receive()))

    async with open_door(measure) as door, door.websocket() as client:
        await client.send_message("x" * MESSAGE_BYTES_MAX)
        with pytest.raises(ConnectionClosed):
            await client.get_message()
    assert sizes == [MESSAGE_BYTES_MAX]


async def test_a_bug_closes_its_connection_only_and_leaves_a_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:  # H8-4
    async with open_door() as door, door.websocket() as other:
        async with door.websocket() as client:
            await client.send_message("crash")
            with pytest.raises(ConnectionClosed) as closed:
                await client.get_message()
        assert closed.value.reason is not None
        assert closed.value.reason.code == 1011
        trace = str(closed.value.reason.reason).split()[-1]
        (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
        assert trace in record.getMessage()
        assert "a bug behind the wire" in caplog.text
        await other.send_message("still here")
        assert await other.get_message() == "still here"


async def test_nothing_is_compressed() -> None:
    async with open_door() as door, await door.connect() as stream:
        answer = await opened(stream, door.host, "Sec-WebSocket-Extensions: permessage-deflate")
        assert b"extensions" not in answer.lower()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(TEXT, b"\xff\xfe"), 1007),
        (frame(TEXT, b"x", mask=False), 1002),
        (frame(0x3, b"x"), 1002),
        (frame(TEXT, b"x", rsv=0x40), 1002),
        (frame(PING, b"x" * 126), 1002),
        (frame(0x0, b"x"), 1002),
    ],
    ids=["no UTF-8", "no mask", "unknown opcode", "reserved bit", "long ping", "no beginning"],
)
async def test_a_client_that_breaks_the_protocol_is_told_so(sent: bytes, code: int) -> None:
    async with open_door() as door:
        async with await door.connect() as stream:
            await opened(stream, door.host)
            await stream.send_all(sent)
            answer = await stream.receive_some()
            assert answer[0] == 0x88
            assert int.from_bytes(answer[2:4], "big") == code
        await door.quiet()


async def test_what_comes_right_behind_the_upgrade_is_read() -> None:  # H8-1
    async with open_door() as door, await door.connect() as stream:
        early = frame(TEXT, b"early")
        answer = await opened(stream, door.host, behind=early)
        if not answer.endswith(b"early"):
            answer += await stream.receive_some()
        assert answer.endswith(b"\x81\x05early")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8"), b"426"),
        (("dGhlIHNhbXBsZSBub25jZQ==", "short"), b"400"),
        (("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), b"400"),
        (("GET /api", "POST /api"), b"400"),
        (("HTTP/1.1", "HTTP/1.0"), b"400"),
        (("/api/v1/vaala", "/web/v1/"), b"404"),
        (("Upgrade: websocket", "Upgrade: h2c"), b"426"),
        (("Host:", "Content-Length: 5\r\nHost:"), b"400"),
        (("Host:", "Sec-WebSocket-Protocol: \xff,,\r\nHost:"), b"400"),
        (("Host:", "Sec-WebSocket-Extensions: \xff\r\nHost:"), b"400"),
        (("Connection: Upgrade", "Connection: Upgrade, \xff"), b"400"),
        (("Host:", "Sec-WebSocket-Protocol: ,,\r\nHost:"), b"101"),
        (("Host:", "Sec-WebSocket-Extensions: ;;;\r\nHost:"), b"101"),
    ],
)
async def test_an_odd_upgrade_is_answered(change: tuple[str, str], status: bytes) -> None:  # H8-2
    old, new = (one.encode() for one in change)
    async with open_door() as door, await door.connect() as stream:
        await stream.send_all(upgrade(door.host).replace(old, new))
        assert (await read_head(stream)).split()[1] == status


async def test_pings_are_answered() -> None:
    async with open_door() as door, await door.connect() as stream:
        await opened(stream, door.host)
        await stream.send_all(frame(PING, b"are you there"))
        assert await stream.receive_some() == b"\x8a\x0dare you there"


async def test_a_silent_client_that_answers_pings_stays(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with paired(echo) as stream, trio.open_nursery() as nursery:
        client = await connected(stream, nursery)
        await trio.sleep(3600)
        await client.send_message("still here")
        assert await client.get_message() == "still here"
        nursery.cancel_scope.cancel()


async def test_a_client_that_is_half_gone_is_found_out(
    autojump_clock: trio.testing.MockClock,
) -> None:  # H2-2
    ended = trio.Event()

    async def wait(wire: Wire, peer: PeerInfo) -> None:
        with pytest.raises(WireClosed):
            await wire.receive()
        ended.set()

    async with paired(wait) as stream:
        await opened(stream, "x")
        began = trio.current_time()
        await ended.wait()  # nothing is read or written here: as if a cable was pulled
        silence = trio.current_time() - began
        assert limits.SILENCE_S_MAX <= silence <= limits.SILENCE_S_MAX + limits.PING_PERIOD_S


async def test_a_client_that_reads_slowly_gets_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:  # H2-2
    total = 4 * MIB
    sent = trio.Event()

    async def push(wire: Wire, peer: PeerInfo) -> None:
        await wire.send(b"x" * total)
        sent.set()

    async with paired(push) as stream:
        answer = await opened(stream, "x")
        received = len(answer.partition(b"\r\n\r\n")[2])
        began = trio.current_time()
        while not sent.is_set():
            await trio.sleep(limits.SILENCE_S_MAX * 0.9)
            data = await stream.receive_some(64 * 1024)
            assert data, "cut off"
            received += len(data)
        assert trio.current_time() - began > 10 * limits.SILENCE_S_MAX
        while received < total:
            data = await stream.receive_some(64 * 1024)
            assert data, f"{received} of {total} bytes"
            received += len(data)


@pytest.mark.parametrize("read", [True, False], ids=["", "while nothing is read from it"])
async def test_a_client_that_stops_reading_is_cut_off(
    autojump_clock: trio.testing.MockClock, read: bool
) -> None:  # H2-2
    outcome: list[int] = []
    ended = trio.Event()

    async def push(wire: Wire, peer: PeerInfo) -> None:
        try:
            while True:
                await wire.send(b"x" * 100_000)
        except WireClosed as closed:
            outcome.append(closed.code)
            ended.set()

    async with paired(push) as stream:
        await opened(stream, "x")
        if not read:  # more than is kept for a server that takes no message
            await stream.send_all(frame(TEXT, b"unheard") * 10)
        began = trio.current_time()
        with trio.fail_after(10 * limits.SILENCE_S_MAX):
            await ended.wait()
        assert trio.current_time() - began <= limits.SILENCE_S_MAX + limits.PING_PERIOD_S
    assert outcome == [1006]


async def test_our_own_silence_is_not_the_clients(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """While the handler takes no message, what the client has sent is not read, pongs included."""
    answers: list[str | bytes] = []

    async def late(wire: Wire, peer: PeerInfo) -> None:
        await trio.sleep(3600)
        answers.extend([await wire.receive() for _ in range(3)])

    async with paired(late) as stream, trio.open_nursery() as nursery:
        client = await connected(stream, nursery)
        for word in ("one", "two", "three"):
            await client.send_message(word)
        with pytest.raises(ConnectionClosed):
            await client.get_message()
        nursery.cancel_scope.cancel()
    assert answers == ["one", "two", "three"]


async def test_a_send_that_is_cancelled_halfway_ends_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Half a frame and then another one would be nonsense to the client."""
    outcomes: list[str] = []

    async def push(wire: Wire, peer: PeerInfo) -> None:
        with trio.move_on_after(5):
            await wire.send(b"x" * 8 * MIB)
        try:
            await wire.send(b"more")
        except WireClosed:
            outcomes.append("closed")

    async with paired(push) as stream:
        await opened(stream, "x")
        await trio.sleep(10)
    assert outcomes == ["closed"]


async def test_an_abort_frees_a_stuck_send(autojump_clock: trio.testing.MockClock) -> None:
    outcomes: list[str] = []

    async def push(wire: Wire, peer: PeerInfo) -> None:
        async def send() -> None:
            with pytest.raises(WireClosed):
                await wire.send(b"x" * 8 * MIB)
            outcomes.append("freed")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await trio.sleep(1)
            wire.abort()

    async with paired(push) as stream:
        await opened(stream, "x")
        await trio.sleep(2)
        assert outcomes == ["freed"]


async def test_junk_that_never_becomes_a_message_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """trio-websocket keeps empty fragments, which its size limit does not count."""
    monkeypatch.setattr(limits, "BYTES_WITHOUT_MESSAGE_MAX", 10_000)
    async with open_door() as door:
        async with await door.connect() as stream:
            await opened(stream, door.host)
            await stream.send_all(frame(TEXT, b"", fin=False) + frame(0, b"", fin=False) * 2_000)
            answer = await stream.receive_some()
            assert int.from_bytes(answer[2:4], "big") == 1008
        async with await door.connect() as stream:
            await opened(stream, door.host)
            for _ in range(20):
                await stream.send_all(frame(PING, b"x" * 100) * 10)
                with trio.fail_after(30):
                    answer = b""
                    while len(answer) < 1_020:
                        answer += await stream.receive_some()
                assert answer == (b"\x8a\x64" + b"x" * 100) * 10
        await door.quiet()
