"""A running command on this machine; its supervisor's side is `supervisor.command`."""

from __future__ import annotations

import fcntl
import math
import os
import selectors
import signal
import socket
import struct
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import trio

from vaala_executors.limits import CHUNK_BYTES_MAX, DRAIN_SECONDS, END_MARGIN_SECONDS
from vaala_executors.local.left_over import end_marked
from vaala_executors.local.supervisor.wire import EXITED, GRACE_SECONDS, KILL_SECONDS, RECORD
from vaala_executors.process import Exit, Process

END_SECONDS = GRACE_SECONDS + KILL_SECONDS + END_MARGIN_SECONDS
END_OF_TRANSMISSION = b"\x04"
"""What a terminal in its usual mode takes for end of file."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Our ends, not blocking. With a PTY both are its controlling side, stdin a duplicate."""

    output: int
    stdin: int | None
    pty: bool


class LocalProcess(Process):
    """Output is pulled: when nobody iterates it, the pipe fills and the command waits.

    The exit record stays unread in the line until `end`, so any number of tasks can see it.
    """

    def __init__(
        self,
        pid: int,
        line: socket.socket,
        streams: Streams,
        *,
        marker: str,
        limiter: trio.CapacityLimiter,
    ) -> None:
        self._pid = pid
        self._line = line
        self._output = streams.output
        self._stdin = streams.stdin
        self._pty = streams.pty
        self._marker = marker
        self._limiter = limiter
        self._exit: Exit | None = None
        self._gone = False
        self._watching = trio.Lock()
        self._ending = trio.Lock()
        self._writing = trio.Lock()
        self._either = selectors.DefaultSelector()
        """Readable when output is or the line is: one descriptor to wait for, and no task."""
        self._either.register(self._output, selectors.EVENT_READ)
        self._either.register(line, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        return self._pid

    async def output(self) -> AsyncIterator[bytes]:
        """Yield pieces of at most 64 KiB; see `Process.output`.

        What lay in the pipe when the exit was seen is always yielded; what others write later
        only during the drain.
        """
        owed = 0
        drained_at = math.inf
        while not self._closed:
            chunk = self._read()
            if chunk is None:
                owed = 0
                if not await self._more(drained_at):
                    return
            elif chunk:
                owed -= len(chunk)
                await trio.lowlevel.checkpoint()
                yield chunk
            else:
                await self.wait()
                return
            if drained_at == math.inf and self._look() is not None:
                drained_at = trio.current_time() + DRAIN_SECONDS
                owed = self._readable_bytes()
            elif owed <= 0 and trio.current_time() >= drained_at:
                return

    async def write(self, data: bytes) -> None:
        """Write all; cancel: a part may have been written."""
        async with self._writing:
            view = memoryview(data)
            while view:
                if self._stdin is None:
                    raise BrokenPipeError(f"process {self._pid} reads no standard input")
                try:
                    view = view[os.write(self._stdin, view) :]
                except BlockingIOError:
                    await _wait(trio.lowlevel.wait_writable, self._stdin)
                except OSError as error:  # a PTY says EIO
                    raise BrokenPipeError(f"process {self._pid} has ended") from error
        await trio.lowlevel.checkpoint()

    async def close_stdin(self) -> None:
        """Let the command read end of file. Nothing when it has no stdin or it is closed."""
        if self._stdin is None:
            await trio.lowlevel.checkpoint()
        elif self._pty:
            await self.write(END_OF_TRANSMISSION)
        else:
            self._close_stdin()
            await trio.lowlevel.checkpoint()

    async def resize(self, columns: int, rows: int) -> None:
        if self._pty and not self._closed:
            termios.tcsetwinsize(self._output, (rows, columns))
        await trio.lowlevel.checkpoint()

    def send_signal(self, name: Literal["INT", "TERM", "KILL", "HUP"]) -> None:
        """See `Process.send_signal`; the supervisor never signals a pid that it has reaped."""
        if self._gone:
            return
        with suppress(OSError):  # the supervisor is gone, and `end` will find that out
            self._line.send(name[0].encode())

    async def wait(self) -> Exit:
        while (found := self._look()) is None:
            async with self._watching:  # only one task may wait for a descriptor
                if self._look() is None:
                    await _wait(trio.lowlevel.wait_readable, self._line)
        await trio.lowlevel.checkpoint()
        return found

    async def end(self) -> Exit:
        with trio.CancelScope(shield=True):
            async with self._ending:
                if not self._gone:
                    await self._end_tree()
                    self._gone = True
        assert self._exit is not None
        return self._exit

    async def aclose(self) -> None:
        """End the tree and give the descriptors back; a task that iterates output stops."""
        try:
            await self.end()
        finally:
            self._close_stdin()
            if not self._closed:
                trio.lowlevel.notify_closing(self._either.fileno())
                self._either.close()
                trio.lowlevel.notify_closing(self._output)
                trio.lowlevel.notify_closing(self._line)
                os.close(self._output)
                self._output = -1
                self._line.close()

    @property
    def _closed(self) -> bool:
        return self._output < 0

    async def _end_tree(self) -> None:
        with suppress(OSError):  # the supervisor is gone: seen below
            self._line.shutdown(socket.SHUT_WR)
        with trio.move_on_after(END_SECONDS):
            await self.wait()
            async with self._watching:
                if await self._until_closed():
                    return
        await trio.to_thread.run_sync(end_marked, self._marker, limiter=self._limiter)
        self._exit = self._exit or Exit(code=None, signal=signal.SIGKILL)

    async def _until_closed(self) -> bool:
        """Read the line to its end; false when it ended without an exit record."""
        heard = b""
        while True:
            try:
                piece = self._line.recv(RECORD.size)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._line)
                continue
            except OSError:
                return False
            if not piece:
                return heard[:1] == EXITED
            heard += piece

    def _look(self) -> Exit | None:
        """Return how the leader ended if that is known, without taking the record."""
        if self._exit is not None:
            return self._exit
        try:
            record = self._line.recv(RECORD.size, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError:
            record = b""
        if len(record) == RECORD.size:
            _, code, number = RECORD.unpack(record)
            self._exit = Exit(None, number) if number else Exit(code, None)
        elif not record:
            # The supervisor was killed. `end` kills what it left, so this becomes true.
            self._exit = Exit(code=None, signal=signal.SIGKILL)
        return self._exit

    def _read(self) -> bytes | None:
        """Return a piece, b"" at the end, None when there is nothing now."""
        try:
            return os.read(self._output, CHUNK_BYTES_MAX)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # EIO: the last process has closed its side of the PTY

    def _readable_bytes(self) -> int:
        answer = fcntl.ioctl(self._output, termios.FIONREAD, bytes(4))
        return int(struct.unpack("i", answer)[0])

    async def _more(self, drained_at: float) -> bool:
        """Wait for output or the exit; false when the drain is over or we are closed."""
        if self._look() is None:
            return await _wait(trio.lowlevel.wait_readable, self._either.fileno())
        with trio.move_on_at(drained_at):
            return await _wait(trio.lowlevel.wait_readable, self._output)
        return False

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            trio.lowlevel.notify_closing(self._stdin)
            os.close(self._stdin)
            self._stdin = None


async def _wait(
    waiting: Callable[[int | socket.socket], Awaitable[None]], what: int | socket.socket
) -> bool:
    """Wait for a descriptor; false when `LocalProcess.aclose` has closed it meanwhile."""
    try:
        await waiting(what)
    except trio.ClosedResourceError:
        return False
    return True
