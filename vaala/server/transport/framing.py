"""`FramedStream`: what lies between trio-websocket and the stream, so that frames never mix.

trio-websocket reads, answers pings and closes. Messages of ours take the short way: a frame of the
server is its length and the payload, and `send_texts` writes just that. The way through
`send_message` decodes and encodes the text once more and costs about twice as much.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import trio

from vaala.server.transport import limits
from vaala.server.transport.stream import ClientStream
from vaala_protocol.close_codes import ABUSE

# RFC 6455, section 5.2: FIN with an opcode, then the length; a server masks nothing.
_TEXT = 0x81
_CLOSE = 0x88
_LENGTH_16 = 126
_LENGTH_64 = 127


class FramedStream(trio.abc.Stream):
    """Give it to trio-websocket instead of the stream. Closing it leaves the stream open: whoever
    owns that may have a last word to say."""

    def __init__(self, stream: ClientStream, upgrade: bytes, behind: bytes) -> None:
        """``upgrade`` and ``behind`` were read from the stream before.

        trio-websocket gets to see what stands behind the upgrade when it has answered that: it
        would leave it lying until more comes (H8-1).
        """
        self._stream = stream
        self._upgrade = upgrade
        self._behind = behind
        self._lock = trio.Lock()
        self._answered = trio.Event()
        self._unexplained = 0
        self.close_sent = False
        """Nothing may follow a close frame."""
        self.closed = trio.Event()
        """trio-websocket has nothing more to do with the stream."""

    async def send_texts(self, messages: Iterable[bytes]) -> None:
        """Send texts in UTF-8, a message each, in one go.

        Raises `trio.ClosedResourceError` behind a close frame, and as trio's streams do. Cancel
        halfway: the stream is aborted.
        """
        try:
            self._lock.acquire_nowait()  # no checkpoint: a cancel does not matter yet
        except trio.WouldBlock:
            await self._lock.acquire()
        try:
            if self.close_sent:
                raise trio.ClosedResourceError("the connection is being closed")
            await self._stream.send_all(b"".join(map(text_frame, messages)))
        finally:
            self._lock.release()

    async def send_close(self, code: int, reason: str) -> None:
        """Send a close frame, unless one was sent."""
        async with self._lock:
            if not self.close_sent:
                self.close_sent = True
                await self._stream.send_all(close_frame(code, reason))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self.closed.is_set():
            raise trio.ClosedResourceError("trio-websocket has closed the stream")
        if self._upgrade:
            data, self._upgrade = self._upgrade, b""
        else:
            await self._answered.wait()
            size = limits.FRAMES_BYTES if max_bytes is None else max_bytes
            data, self._behind = self._behind[:size], self._behind[size:]
            if not data:
                data = await self._stream.receive_some(size)
        self._unexplained += len(data)
        if self._unexplained > limits.BYTES_WITHOUT_MESSAGE_MAX:
            await self.send_close(ABUSE, f"{self._unexplained} bytes without a whole message")
            raise trio.BrokenResourceError("the client sends bytes, but no messages")
        return data

    def message_delivered(self) -> None:
        """A message of the client was whole: what it had sent is explained by that."""
        self._unexplained = 0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send what trio-websocket has made: the answer to the upgrade, then whole frames."""
        async with self._lock:
            if self.closed.is_set():
                raise trio.ClosedResourceError("trio-websocket has closed the stream")
            self.close_sent |= self._answered.is_set() and data[:1] == bytes([_CLOSE])
            self._answered.set()
            # Mostly pongs; the ping had a mask of four bytes more.
            self._unexplained = max(0, self._unexplained - len(data) - 4)
            await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.closed.set()
        await trio.lowlevel.checkpoint()


def text_frame(message: bytes) -> bytes:
    """Return a whole text message as one frame of a server."""
    return _head(_TEXT, len(message)) + message


def close_frame(code: int, reason: str) -> bytes:
    """Return a close frame of a server; a reason that is too long is cut."""
    said = cut_reason(reason).encode()
    return _head(_CLOSE, 2 + len(said)) + struct.pack("!H", code) + said


def cut_reason(reason: str) -> str:
    """Return as much of a reason as a close frame holds, in whole characters."""
    return reason.encode("utf-8", "replace")[: limits.CLOSE_REASON_BYTES_MAX].decode(
        "utf-8", "ignore"
    )


def _head(opcode: int, length: int) -> bytes:
    if length < _LENGTH_16:
        return bytes((opcode, length))
    if length < 1 << 16:
        return struct.pack("!BBH", opcode, _LENGTH_16, length)
    return struct.pack("!BBQ", opcode, _LENGTH_64, length)
