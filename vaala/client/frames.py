"""The frames of a WebSocket (RFC 6455, section 5) as its client reads and writes them, without I/O.

`FrameReader` is given bytes as they come and returns whole messages. No extension is asked for,
so none of the reserved bits may be set.
"""

from __future__ import annotations

import os
import struct
from typing import Final

from msgspec import Struct

from vaala_protocol.close_codes import NOT_UTF8, PROTOCOL_ERROR, TOO_BIG

CONTINUATION: Final = 0x0
TEXT: Final = 0x1
BINARY: Final = 0x2
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA

NO_CODE: Final = 1005
"""Stands for the code of a close frame that has none; section 7.4.1."""

_KNOWN: Final = frozenset({CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG})
_FIN: Final = 0x80
_RESERVED: Final = 0x70
_MASKED: Final = 0x80
_LENGTH_16: Final = 126
_LENGTH_64: Final = 127
_CONTROL_BYTES_MAX: Final = 125
_REASON_BYTES_MAX: Final = _CONTROL_BYTES_MAX - 2


class ProtocolFault(Exception):
    """The server breaks the protocol, or a limit: nothing more can be read.

    ``code`` is what the connection is to be closed with.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Message(Struct, frozen=True):
    """A whole message, or a control frame."""

    kind: int
    """`TEXT`, `BINARY`, `CLOSE`, `PING` or `PONG`."""
    data: bytes
    """Of a text it is UTF-8."""


class FrameReader:
    """Bounded: it holds one message of at most ``message_bytes_max``, and what was fed last."""

    def __init__(self, message_bytes_max: int, data: bytes = b"") -> None:
        """``data`` came behind the answer to the upgrade."""
        self._message_bytes_max = message_bytes_max
        self._buffer = bytearray(data)
        self._position = 0
        self._kind: int | None = None
        """Of the message whose first fragments are here."""
        self._fragments = bytearray()

    def feed(self, data: bytes | bytearray) -> None:
        """Take in what came; call it when `next` has nothing more."""
        del self._buffer[: self._position]
        self._position = 0
        self._buffer += data

    def next(self) -> Message | None:
        """Return the next message; None: more bytes are needed. Raises `ProtocolFault`."""
        while (frame := self._frame()) is not None:
            final, opcode, payload = frame
            if opcode == CLOSE:
                close_reason(payload)
            if opcode >= CLOSE:
                return Message(opcode, payload)
            if final and opcode != CONTINUATION:
                return _checked(opcode, payload)
            if opcode != CONTINUATION:
                self._kind = opcode
            self._fragments += payload
            if final:
                assert self._kind is not None
                kind, whole = self._kind, bytes(self._fragments)
                self._kind = None
                self._fragments.clear()
                return _checked(kind, whole)
        return None

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """Return the next frame: whether it is the last of its message, its opcode, its payload."""
        buffer, start = self._buffer, self._position
        if len(buffer) - start < 2:
            return None
        first, length = buffer[start], buffer[start + 1]
        self._check_head(first, length)
        start += 2
        if length >= _LENGTH_16:
            size = 2 if length == _LENGTH_16 else 8
            if len(buffer) - start < size:
                return None
            length = _length(bytes(buffer[start : start + size]))
            start += size
        if first & 0xF < CLOSE and len(self._fragments) + length > self._message_bytes_max:
            raise ProtocolFault(TOO_BIG, f"a message has at most {self._message_bytes_max} bytes")
        if len(buffer) - start < length:
            return None
        self._position = start + length
        return bool(first & _FIN), first & 0xF, bytes(buffer[start : self._position])

    def _check_head(self, first: int, second: int) -> None:
        opcode = first & 0xF
        if first & _RESERVED or opcode not in _KNOWN:
            raise ProtocolFault(PROTOCOL_ERROR, f"a frame begins with the byte {first:#04x}")
        if second & _MASKED:
            raise ProtocolFault(PROTOCOL_ERROR, "a server masks no frames")
        if opcode >= CLOSE:
            if not first & _FIN or second > _CONTROL_BYTES_MAX:
                raise ProtocolFault(PROTOCOL_ERROR, "a control frame is short and whole")
        elif (opcode == CONTINUATION) is (self._kind is None):
            raise ProtocolFault(PROTOCOL_ERROR, "fragments of a message are out of order")


def close_reason(payload: bytes) -> tuple[int, str]:
    """Return the code and the reason in a close frame. Raises `ProtocolFault`."""
    if not payload:
        return NO_CODE, ""
    if len(payload) == 1:
        raise ProtocolFault(PROTOCOL_ERROR, "a close frame with half a code")
    code = int.from_bytes(payload[:2], "big")
    if not (1000 <= code <= 1014 and code not in (1004, 1005, 1006)) and not 3000 <= code < 5000:
        raise ProtocolFault(PROTOCOL_ERROR, f"a close frame with the code {code}")
    return code, _text(payload[2:])


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a whole message, or a control frame, with a mask as a client's must have."""
    length = len(payload)
    if length < _LENGTH_16:
        head = bytes((_FIN | opcode, _MASKED | length))
    elif length < 1 << 16:
        head = struct.pack("!BBH", _FIN | opcode, _MASKED | _LENGTH_16, length)
    else:
        head = struct.pack("!BBQ", _FIN | opcode, _MASKED | _LENGTH_64, length)
    mask = os.urandom(4)
    return head + mask + masked(payload, mask)


def close_frame(code: int, reason: str = "") -> bytes:
    """Return a close frame; a reason that is too long is cut."""
    said = reason.encode("utf-8", "replace")[:_REASON_BYTES_MAX].decode("utf-8", "ignore")
    return frame(CLOSE, struct.pack("!H", code) + said.encode())


def masked(payload: bytes, mask: bytes) -> bytes:
    """Return a payload with its mask of four bytes put on, or taken off; section 5.3."""
    length = len(payload)
    pattern = (mask * (length // 4 + 1))[:length]
    # As two long numbers: a loop over bytes takes a hundred times as long.
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")
    return mixed.to_bytes(length, "big")


def _length(data: bytes) -> int:
    """Read a length that stands in bytes of its own; the shortest form must have been taken."""
    length = int.from_bytes(data, "big")
    if length < _LENGTH_16 or (len(data) == 8 and not 1 << 16 <= length < 1 << 63):
        raise ProtocolFault(PROTOCOL_ERROR, f"the length {length} in {len(data)} bytes")
    return length


def _checked(kind: int, data: bytes) -> Message:
    if kind == TEXT and not data.isascii():
        _text(data)
    return Message(kind, data)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtocolFault(NOT_UTF8, "text that is no UTF-8") from None
