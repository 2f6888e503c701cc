"""The output of a command, pulled from its pipe or PTY until the command has exited."""

from __future__ import annotations

import fcntl
import math
import os
import selectors
import socket
import struct
import termios
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from vaala_executors.limits import CHUNK_BYTES_MAX, DRAIN_SECONDS
from vaala_executors.process import Exit


class Outflow(AsyncIterator[bytes]):
    """Yields pieces of at most 64 KiB. When nobody pulls, the pipe fills and the command waits.

    What lay in the pipe when the exit was seen is always yielded; what others write later, only
    during the drain. Not a generator, so that leaving it half read needs no care.
    """

    def __init__(
        self,
        descriptor: int,
        line: socket.socket,
        look: Callable[[], Exit | None],
        wait: Callable[[], Awaitable[Exit]],
    ) -> None:
        self._descriptor = descriptor
        self._look = look
        self._wait = wait
        self._either = selectors.DefaultSelector()
        """Readable when output is or the line is: one descriptor to wait for, and no task."""
        self._either.register(descriptor, selectors.EVENT_READ)
        self._either.register(line, selectors.EVENT_READ)
        self._owed = 0
        self._drained_at = math.inf

    async def __anext__(self) -> bytes:
        while not self.closed:
            if self._drained_at == math.inf and self._look() is not None:
                # All that the command itself wrote is in the pipe; the time is for the rest.
                self._drained_at = trio.current_time() + DRAIN_SECONDS
                self._owed = self._readable_bytes()
            elif self._owed <= 0 and trio.current_time() >= self._drained_at:
                break
            chunk = self._read()
            if chunk:
                self._owed -= len(chunk)
                await trio.lowlevel.checkpoint()
                return chunk
            if chunk is not None:
                await self._wait()
                break
            self._owed = 0
            if not await self._more():
                break
        raise StopAsyncIteration

    @property
    def closed(self) -> bool:
        return self._descriptor < 0

    def resize(self, columns: int, rows: int) -> None:
        if not self.closed:
            termios.tcsetwinsize(self._descriptor, (rows, columns))

    def close(self) -> None:
        """Close our end; whoever waits for output has reached its end."""
        if self.closed:
            return
        trio.lowlevel.notify_closing(self._either.fileno())
        self._either.close()
        trio.lowlevel.notify_closing(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1

    def _read(self) -> bytes | None:
        """Return a piece, b"" at the end, None when there is nothing now."""
        try:
            return os.read(self._descriptor, CHUNK_BYTES_MAX)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # EIO: the last process has closed its side of the PTY

    def _readable_bytes(self) -> int:
        answer = fcntl.ioctl(self._descriptor, termios.FIONREAD, bytes(4))
        return int(struct.unpack("i", answer)[0])

    async def _more(self) -> bool:
        """Wait for output or the exit; false when the drain is over or we were closed."""
        if self._drained_at == math.inf:  # an exit since the last look has no drain yet
            return await wait_open(trio.lowlevel.wait_readable, self._either.fileno())
        with trio.move_on_at(self._drained_at):
            return await wait_open(trio.lowlevel.wait_readable, self._descriptor)
        return False


async def wait_open(
    waiting: Callable[[int | socket.socket], Awaitable[None]], what: int | socket.socket
) -> bool:
    """Wait for a descriptor; false when it was closed meanwhile."""
    try:
        await waiting(what)
    except trio.ClosedResourceError:
        return False
    return True
