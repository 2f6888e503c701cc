"""Frames of a WebSocket: what a server may send, what it may not, and what we send."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import CloseConnection, Message, Ping, TextMessage

from vaala.client.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    NO_CODE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    ProtocolFault,
    close_frame,
    close_reason,
    frame,
    masked,
)

MAX = 1_000_000
FIN = 0x80


def _frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """As a server sends it."""
    length = len(payload)
    first = bytes([opcode | (FIN if final else 0)])
    if length < 126:
        return first + bytes([length]) + payload
    if length < 1 << 16:
        return first + b"\x7e" + length.to_bytes(2, "big") + payload
    return first + b"\x7f" + length.to_bytes(8, "big") + payload


def _read(pieces: Iterable[bytes], *, message_bytes_max: int = MAX) -> list[tuple[int, bytes]]:
    reader = FrameReader(message_bytes_max)
    found: list[tuple[int, bytes]] = []
    for piece in pieces:
        reader.feed(piece)
        while (message := reader.next()) is not None:
            found.append((message.kind, message.data))
    return found


def _fault(data: bytes, *, message_bytes_max: int = MAX) -> int:
    with pytest.raises(ProtocolFault) as caught:
        _read([data], message_bytes_max=message_bytes_max)
    return caught.value.code


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65_535, 65_536, 200_000])
def test_a_message_of_any_length_is_read(length: int) -> None:
    payload = b"x" * length
    assert _read([_frame(TEXT, payload)]) == [(TEXT, payload)]
    assert _read([_frame(BINARY, payload)]) == [(BINARY, payload)]


def test_many_messages_in_one_piece_and_one_in_many_pieces() -> None:
    texts = ["one", "", "zwölf €", "y" * 300]
    data = b"".join(_frame(TEXT, text.encode()) for text in texts)
    expected = [(TEXT, text.encode()) for text in texts]
    assert _read([data]) == expected
    assert _read(data[at : at + 1] for at in range(len(data))) == expected


def test_what_came_behind_the_upgrade_is_read_first() -> None:
    reader = FrameReader(MAX, _frame(TEXT, b"early")[:4])
    assert reader.next() is None
    reader.feed(_frame(TEXT, b"early")[4:])
    message = reader.next()
    assert message is not None
    assert message.data == b"early"


def test_control_frames_stand_between_fragments() -> None:
    # A fragment may end within a character.
    euro = "€".encode()
    data = (
        _frame(TEXT, euro[:1], final=False)
        + _frame(PING, b"here?")
        + _frame(CONTINUATION, euro[1:], final=False)
        + _frame(PONG, b"")
        + _frame(CONTINUATION, b"", final=True)
        + _frame(TEXT, b"next")
    )
    expected = [(PING, b"here?"), (PONG, b""), (TEXT, euro), (TEXT, b"next")]
    assert _read([data]) == expected
    assert _read(data[at : at + 3] for at in range(0, len(data), 3)) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"\x81\x85abcdhello",  # a mask
        b"\xc1\x00",  # a reserved bit
        b"\x83\x00",  # an opcode that is none
        b"\x8b\x00",
        _frame(CONTINUATION, b"of nothing"),
        _frame(TEXT, b"a", final=False) + _frame(TEXT, b"b"),
        _frame(PING, b"", final=False),
        _frame(PING, b"x" * 126),
        b"\x81\x7e\x00\x7d" + b"x" * 125,  # not the shortest form of the length
        b"\x81\x7f" + (65_535).to_bytes(8, "big"),
        b"\x82\x7f" + (1 << 63).to_bytes(8, "big"),
        _frame(CLOSE, b"\x03"),
        _frame(CLOSE, b"\x03\xee"),  # 1006 stands for no close frame at all
        _frame(CLOSE, b"\x03\xe7"),
        _frame(CLOSE, b"\x07\xd0"),
    ],
)
def test_what_breaks_the_protocol_is_a_fault(data: bytes) -> None:
    assert _fault(data) == 1002


def test_text_that_is_no_utf8_is_a_fault() -> None:
    assert _fault(_frame(TEXT, b"\xff")) == 1007
    assert _fault(_frame(TEXT, b"\xe2", final=False) + _frame(CONTINUATION, b"x")) == 1007
    assert _fault(_frame(CLOSE, b"\x03\xe8\xff")) == 1007
    assert _read([_frame(BINARY, b"\xff")]) == [(BINARY, b"\xff")]


def test_a_message_that_is_too_big_is_refused_by_its_head() -> None:
    assert _read([_frame(TEXT, b"x" * 10)], message_bytes_max=10) == [(TEXT, b"x" * 10)]
    assert _fault(b"\x81\x0b", message_bytes_max=10) == 1009
    assert _fault(b"\x81\x7f" + (1 << 40).to_bytes(8, "big")) == 1009
    fragments = _frame(TEXT, b"x" * 6, final=False) + _frame(CONTINUATION, b"x" * 6)
    assert _fault(fragments, message_bytes_max=10) == 1009


def test_the_reason_of_a_close() -> None:
    assert close_reason(b"") == (NO_CODE, "")
    assert close_reason(b"\x03\xe9bye \xe2\x82\xac") == (1001, "bye €")
    assert close_reason(b"\x0b\xb8") == (3000, "")


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 126, 70_000])
def test_a_mask_changes_each_byte_by_its_place(length: int) -> None:
    payload, mask = random.Random(length).randbytes(length), b"\x00\x7f\xa5\x01"
    mixed = masked(payload, mask)
    assert mixed == bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    assert masked(mixed, mask) == payload


def test_another_implementation_reads_what_is_sent() -> None:
    peer = Connection(ConnectionType.SERVER)
    long = "z" * 70_000
    peer.receive_data(
        frame(TEXT, b"short")
        + frame(PING, b"7")
        + frame(TEXT, long.encode())
        + close_frame(1000, "é" * 200)
    )
    events = list(peer.events())
    text = "".join(event.data for event in events if isinstance(event, TextMessage))
    assert text == "short" + long
    assert [type(event) for event in events if not isinstance(event, Message)] == [
        Ping, CloseConnection,
    ]  # fmt: skip
    close = events[-1]
    assert isinstance(close, CloseConnection)
    assert (close.code, close.reason) == (1000, "é" * 61)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_comes_in_whatever_pieces_is_messages_or_a_fault(seed: int) -> None:
    chance = random.Random(seed)
    noise = chance.randbytes(2_000)
    whole: list[object] = []
    for pieces in ([noise], [noise[at : at + 7] for at in range(0, len(noise), 7)]):
        try:
            whole.append(_read(pieces, message_bytes_max=500))
        except ProtocolFault as fault:
            whole.append(fault.code)
    assert whole[0] == whole[1]
