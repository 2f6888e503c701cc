"""What is sent to hurt: it ends its own connection, and nobody else notices (H8-1, H8-2)."""

from __future__ import annotations

import gc
import logging
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio
import trio.testing
from trio_websocket import WebSocketConnection

from tests.vaala.server.transport.doors import (
    TOKEN,
    Door,
    open_door,
    open_files,
    read_all,
    site,
    tasks,
    upgrade,
)
from tests.vaala.server.transport.frames import frame, opened, random_frame
from vaala.server.transport import limits
from vaala.server.transport.front_door import FrontDoor
from vaala.server.transport.guard import Guard
from vaala.server.wire import PeerInfo, Wire
from vaala_protocol.limits import MESSAGE_BYTES_MAX

LINE = "GET /healthz HTTP/1.1"
REQUEST = "{line}\r\nHost: {host}\r\n\r\n"


class Witness:
    """A client that must not notice anything."""

    def __init__(self, client: WebSocketConnection) -> None:
        self._client = client
        self._said = 0

    async def look(self) -> None:
        self._said += 1
        await self._client.send_message(f"word {self._said}")
        assert await self._client.get_message() == f"word {self._said}"


@asynccontextmanager
async def witnessed(caplog: pytest.LogCaptureFixture) -> AsyncGenerator[tuple[Door, Witness]]:
    """Open a door with another client; in the end nothing is left but that client, and nothing
    that happened looks like a bug of the server."""
    async with open_door() as door, door.websocket() as client:
        witness = Witness(client)
        await witness.look()
        assert await door.still_serves()
        await door.quiet(besides=1)
        files, living = open_files(), tasks()
        yield door, witness
        await witness.look()
        assert await door.still_serves()
        await door.quiet(besides=1)
        gc.collect()
        assert (open_files(), tasks()) == (files, living)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


async def send_and_leave(door: Door, data: bytes) -> bytes:
    """Send something, end our side, and return all that is answered."""
    async with await door.connect() as stream:
        try:
            await stream.send_all(data)
            await stream.send_eof()
        except trio.BrokenResourceError:
            return b""
        return await read_all(stream)


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500, b"HTTP/1.1 400 "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 505 "),
        (b"how are you?\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x00" * 1_000, b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: x\r\nx: " + b"y" * 100_000, b"HTTP/1.1 431 "),
        (b"GET /" + b"y" * 100_000, b"HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\nHos", b"HTTP/1.1 400 "),
        (b"", b""),
    ],
    ids=["TLS", "HTTP/2", "text", "no host", "two hosts", "bad header", "zeros", "long header",
         "long line", "half", "nothing"],
)  # fmt: skip
async def test_what_is_no_request_is_answered_or_closed(
    data: bytes, answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:  # H8-2
    async with witnessed(caplog) as (door, _):
        got = await send_and_leave(door, data)
        assert got.startswith(answer)
        assert (got == b"") == (answer == b"")


async def test_bytes_behind_an_upgrade_end_nothing_but_their_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:  # H8-1
    async with witnessed(caplog) as (door, witness):
        for behind in (b"GARBAGE\xff\xff\xff", b"\x00" * 70_000, frame(8, b"") * 3, b"\x81\xff"):
            await send_and_leave(door, upgrade(door.host) + behind)
            await witness.look()
            await send_and_leave(door, upgrade(door.host, token="wrong") + behind)
            await witness.look()


async def test_random_frames_end_their_own_connection_at_most(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with witnessed(caplog) as (door, witness):
        for seed in range(300):
            random = Random(seed)
            frames = [random_frame(random) for _ in range(30)]
            async with await door.connect() as stream:
                await opened(stream, door.host)
                try:
                    await stream.send_all(b"".join(frames))
                    if random.random() < 0.5:
                        await stream.send_eof()
                except trio.BrokenResourceError:
                    pass
            if seed % 50 == 0:
                await witness.look()


async def test_mutated_requests_end_their_own_connection_at_most(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with witnessed(caplog) as (door, witness):
        for seed in range(300):
            random = Random(seed)
            good = random.choice(
                (upgrade(door.host), REQUEST.format(line=LINE, host=door.host).encode())
            )
            data = bytearray(good)
            for _ in range(random.randrange(1, 4)):
                data[random.randrange(len(data))] = random.randrange(256)
            await send_and_leave(door, bytes(data[: random.randrange(len(data) + 1)]) or b"\n")
            if seed % 50 == 0:
                await witness.look()


async def test_frames_that_say_they_are_huge_take_no_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with witnessed(caplog) as (door, _), await door.connect() as stream:
        await opened(stream, door.host)
        await stream.send_all(b"\x81\xff" + struct.pack("!Q", 1 << 62) + b"mask")
        sent = 0

        async def send_on() -> None:
            nonlocal sent
            while sent < 200_000_000:
                await stream.send_all(bytes(1_000_000))
                sent += 1_000_000

        with pytest.raises(trio.BrokenResourceError):
            await send_on()
        assert sent < MESSAGE_BYTES_MAX + limits.LINGER_BYTES_MAX + 20_000_000


async def passes(door: Door, frames: bytes) -> int:
    """Return how often everybody else may run while frames, and a ping behind them, are taken."""
    count = 0

    async def others() -> None:
        nonlocal count
        while True:
            await trio.lowlevel.checkpoint()
            count += 1

    async with await door.connect() as stream, trio.open_nursery() as nursery:
        await stream.send_all(upgrade(door.host) + frames + frame(9, b"all taken"))
        nursery.start_soon(others)
        answer = b""
        while not answer.endswith(b"all taken"):
            answer += await stream.receive_some()
        nursery.cancel_scope.cancel()
    return count


async def test_a_flood_of_empty_frames_lets_others_run() -> None:
    async with open_door() as door:
        await passes(door, b"")  # what is imported late
        alone = await passes(door, b"")
        flood = frame(1, b"", fin=False) + frame(0, b"", fin=False) * 8_000
        pieces = len(flood) // limits.FRAMES_BYTES
        assert await passes(door, flood) - alone >= pieces


async def test_connections_that_say_nothing_keep_nobody_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slowloris: more connections than strangers may have, each with half a request."""
    monkeypatch.setattr(limits, "STRANGERS_MAX", 50)
    async with witnessed(caplog) as (door, witness):
        held: list[trio.SocketStream] = []
        for _ in range(200):
            stream = await door.connect()
            await stream.send_all(b"GET / HTTP/1.1\r\nHo")
            held.append(stream)
        with trio.fail_after(30):
            while door.live > 50 + 1:
                await trio.testing.wait_all_tasks_blocked(0.001)
        await witness.look()
        assert await door.still_serves()  # H6-3
        for stream in held:
            await stream.aclose()


async def test_a_request_that_drips_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    client = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
    front = FrontDoor(Guard(TOKEN, ["x"]), _nobody, site)

    async def drip() -> None:
        while True:
            await client.send_all(b"x")
            await trio.sleep(1)

    async with client, trio.open_nursery() as nursery:
        nursery.start_soon(front.serve, ours, PeerInfo("pair", local=True))
        await client.send_all(b"GET / HTTP/1.1\r\nx: ")
        nursery.start_soon(drip)
        answer = await client.receive_some()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert trio.current_time() >= limits.HEAD_S
        nursery.cancel_scope.cancel()


async def test_a_connection_that_asks_nothing_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        front = FrontDoor(Guard(TOKEN, ["x"]), _nobody, site)
        began = trio.current_time()
        await front.serve(ours, PeerInfo("pair", local=True))
        spent = trio.current_time() - began
        assert limits.HEAD_S <= spent <= limits.HEAD_S + limits.LINGER_S


async def test_a_storm_of_connections_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:  # H6-2, H6-3
    """Clients that come and go at once, in each of the ways in which they can."""
    async with witnessed(caplog) as (door, witness):

        async def come_and_go(number: int) -> None:
            async with await door.connect() as stream:
                match number % 5:
                    case 0:
                        return
                    case 1:
                        await stream.send_all(b"GET / HTT")
                    case 2:
                        await stream.send_all(upgrade(door.host))
                    case 3:
                        await opened(stream, door.host)
                    case _:
                        await opened(stream, door.host)
                        await stream.send_all(frame(1, b"hello") + frame(8, b"\x03\xe8"))
                        await read_all(stream)

        for _ in range(6):
            async with trio.open_nursery() as nursery:
                for number in range(100):
                    nursery.start_soon(come_and_go, number)
            await witness.look()
            assert (await door.ask("/healthz")).status == 200


async def test_a_client_that_resets_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    async with witnessed(caplog) as (door, witness):
        for data in (b"", b"GET / HT", upgrade(door.host), upgrade(door.host) + frame(1, b"x")):
            for _ in range(20):
                stream = await door.connect()
                await stream.send_all(data)
                linger = struct.pack("ii", 1, 0)
                stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                await stream.aclose()
            await witness.look()


async def test_clients_that_do_not_read_hold_up_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def flood(wire: Wire, peer: PeerInfo) -> None:
        if await wire.receive() == "flood me":
            while True:
                await wire.send(b"x" * 10_000)
        await wire.send(b"hello")

    async with open_door(flood) as door:
        streams = [await door.connect() for _ in range(10)]
        for stream in streams:
            await opened(stream, door.host)
            await stream.send_all(frame(1, b"flood me"))
        for _ in range(5):
            async with door.websocket() as client:
                await client.send_message("hello?")
                assert await client.get_message() == "hello"
        for stream in streams:
            await stream.aclose()
        await door.quiet()


async def test_what_goes_on_ends_with_the_door() -> None:  # H8-5
    """A cancel ends all connections at once, stuck ones included."""

    async def flood(wire: Wire, peer: PeerInfo) -> None:
        while True:
            await wire.send(b"x" * 10_000)

    living = tasks()
    streams: list[trio.SocketStream] = []
    with trio.fail_after(3):
        async with open_door(flood) as door:
            for number in range(20):
                stream = await door.connect()
                streams.append(stream)
                if number % 2:
                    await opened(stream, door.host)
                else:
                    await stream.send_all(b"GET / HT")
            await trio.testing.wait_all_tasks_blocked()
    assert tasks() == living
    for stream in streams:
        await stream.aclose()


async def _nobody(wire: Wire, peer: PeerInfo) -> None:
    raise AssertionError("nobody gets so far")
