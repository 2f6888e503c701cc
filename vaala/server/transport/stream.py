"""`ClientStream`: the bytes of one connection, with what a server has to know about its peer."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import termios
from array import array

import trio

from vaala.server.transport import limits

_DISCARD = struct.pack("ii", 1, 0)


class ClientStream(trio.abc.Stream):
    """A connected socket, owned: `abort` or `aclose` it.

    One task may receive and one may send at the same time. A send that is cancelled halfway would
    leave the peer in the middle of a message, so it aborts the connection.
    """

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._unix = connected.family == socket.AF_UNIX
        self._waits_for_bytes = False
        self._last_sign = trio.current_time()
        self._unread = 0
        if not self._unix:
            with contextlib.suppress(OSError):  # macOS, when the peer has gone already
                # Messages are small and wanted now.
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connected.setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, limits.UNSENT_BYTES
                )

    @property
    def unix(self) -> bool:
        """It came through a unix socket."""
        return self._unix

    @property
    def closed(self) -> bool:
        return self._socket.fileno() < 0

    def last_sign(self) -> float:
        """Return when the peer last showed that it lives, on trio's clock.

        It sends a byte, or it takes one that had to wait, which is noticed between two calls of
        this, too. What the kernel takes off us without waiting says nothing: it would do that for
        a peer whose cable was pulled. While we do not read, silence is ours; but not that nothing
        is taken of what waits for the peer.
        """
        unread = _unread_bytes(self._socket)
        if unread < self._unread or not (self._waits_for_bytes or unread):
            self._last_sign = trio.current_time()
        self._unread = unread
        return self._last_sign

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return bytes, none at the end. Raises as trio's streams do. Cancel: nothing is lost."""
        size = limits.RECEIVE_BYTES if max_bytes is None else max_bytes
        await trio.lowlevel.checkpoint()
        while True:
            try:
                data = self._open_socket().recv(size)
            except BlockingIOError:
                await self._wait_for_bytes()
            except OSError as error:
                raise trio.BrokenResourceError from error
            else:
                self._last_sign = trio.current_time()
                return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send everything. Raises as trio's streams do.

        A cancel is heeded only when the peer does not read fast enough: what the kernel takes at
        once goes out whole, so a server that ends leaves no half messages behind without need. A
        cancel halfway aborts the stream.
        """
        left = memoryview(data)
        while left:
            try:
                left = left[self._open_socket().send(left) :]
            except BlockingIOError:
                await self._wait_for_room(half_sent=len(left) < len(data))
            except OSError as error:
                raise trio.BrokenResourceError from error
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.wait_writable(self._open_socket())

    async def aclose(self) -> None:
        """Close; what was sent still goes out."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        if not self.closed:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    def abort(self) -> None:
        """Close at once and drop what the peer has not taken. Whoever waits on the stream gets
        `trio.ClosedResourceError`. Harmless when it is closed."""
        if not self.closed and not self._unix:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
        self.close()

    async def linger(self) -> None:
        """End our side and read on for a moment, so that the peer sees what was sent last.

        Never raises but for a cancel. Does not close.
        """
        try:
            self._open_socket().shutdown(socket.SHUT_WR)
            with trio.move_on_after(limits.LINGER_S):
                left = limits.LINGER_BYTES_MAX
                while left > 0 and (data := await self.receive_some()):
                    left -= len(data)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            return

    def _open_socket(self) -> socket.socket:
        if self.closed:
            raise trio.ClosedResourceError("this side has closed the connection")
        return self._socket

    async def _wait_for_bytes(self) -> None:
        self._last_sign = trio.current_time()
        self._waits_for_bytes = True
        try:
            await trio.lowlevel.wait_readable(self._socket)
        finally:
            self._waits_for_bytes = False

    async def _wait_for_room(self, *, half_sent: bool) -> None:
        try:
            await trio.lowlevel.wait_writable(self._socket)
        except BaseException:
            if half_sent:
                self.abort()
            raise
        self._last_sign = trio.current_time()


def _unread_bytes(connected: socket.socket) -> int:
    """Return how many bytes wait on our side for the peer; 0 where the system does not tell."""
    answer = array("i", [0])
    try:
        fcntl.ioctl(connected, termios.TIOCOUTQ, answer)
    except (OSError, ValueError):  # closed, or a system that has this for terminals only
        return 0
    return answer[0]
