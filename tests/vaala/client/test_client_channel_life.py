"""The life of a `WebSocketChannel` whose server a test plays: pings, closes, faults."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from vaala.client.channel import ChannelClosed, WebSocketChannel
from vaala.client.frames import CLOSE, PING, PONG, masked

TEXT_HI = b"\x81\x02hi"


def _sent(data: bytes | bytearray) -> list[tuple[int, bytes]]:
    """Return the short frames of a client, unmasked."""
    found: list[tuple[int, bytes]] = []
    while data:
        length = data[1] & 0x7F
        found.append((data[0] & 0xF, masked(bytes(data[6 : 6 + length]), bytes(data[2:6]))))
        data = data[6 + length :]
    return found


async def test_pings_are_answered_and_messages_read_while_a_send_is_stuck() -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    channel = WebSocketChannel(ours, b"", near=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.answer_pings)
        nursery.start_soon(channel.send, b"{}")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(theirs.send_all, b"\x89\x01a" + b"\x89\x01b" + TEXT_HI)
        with trio.fail_after(5):
            assert await channel.receive() == b"hi"
            data = await theirs.receive_some()
            while len(data) < 15:
                data += await theirs.receive_some()
        # The second ping alone is answered: RFC 6455, 5.5.3.
        assert _sent(data) == [(1, b"{}"), (PONG, b"b")]
        nursery.cancel_scope.cancel()


async def test_a_check_waits_for_its_own_pong() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    channel = WebSocketChannel(ours, b"", near=True)
    returned = False

    async def check() -> None:
        nonlocal returned
        await channel.check()
        returned = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.receive)
        nursery.start_soon(check)
        (kind, payload), = _sent(await theirs.receive_some())  # fmt: skip
        assert kind == PING
        await theirs.send_all(b"\x8a\x05other")
        await trio.testing.wait_all_tasks_blocked()
        assert not returned
        await theirs.send_all(bytes([0x8A, len(payload)]) + payload)
        await trio.testing.wait_all_tasks_blocked()
        assert returned
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("data", "code", "answer"),
    [
        (b"\x88\x05\x03\xe9bye", 1001, b"\x03\xe9bye"),
        (b"\x88\x00", 1005, b"\x03\xe8"),
        (b"\xc1\x00", 1002, b"\x03\xeaa frame begins with the byte 0xc1"),
        (b"\x81\x01\xff", 1007, b"\x03\xeftext that is no UTF-8"),
    ],
)
async def test_what_ends_a_channel_is_answered_and_told(
    data: bytes, code: int, answer: bytes
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    channel = WebSocketChannel(ours, b"", near=True)
    await theirs.send_all(TEXT_HI + data)
    assert await channel.receive() == b"hi"
    for _ in range(2):
        with pytest.raises(ChannelClosed) as caught:
            await channel.receive()
        assert caught.value.code == code
    assert _sent(await theirs.receive_some()) == [(CLOSE, answer)]
    with pytest.raises(ChannelClosed):
        await channel.send(b"{}")
    with pytest.raises(ChannelClosed):
        await channel.check()


@pytest.mark.parametrize("last", [b"", b"\x81", b"\x81\x7f\x00"])
async def test_an_end_without_a_word_is_one_also_within_a_frame(last: bytes) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    channel = WebSocketChannel(ours, TEXT_HI, near=True)
    await theirs.send_all(last or TEXT_HI)
    await theirs.aclose()
    assert await channel.receive() == b"hi"
    if not last:
        assert await channel.receive() == b"hi"
    with pytest.raises(ChannelClosed) as caught:
        await channel.receive()
    assert caught.value.code == 1006


async def test_a_close_is_over_when_the_server_has_said_so_too() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    channel = WebSocketChannel(ours, b"", near=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.close)
        assert _sent(await theirs.receive_some()) == [(CLOSE, b"\x03\xe8")]
        await trio.testing.wait_all_tasks_blocked()
        await theirs.send_all(TEXT_HI + b"\x88\x02\x03\xe8")
    with pytest.raises(ChannelClosed):
        await channel.send(b"{}")
