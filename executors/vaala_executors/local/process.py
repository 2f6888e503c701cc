"""A running command on this machine; its supervisor's side is `supervisor.command`."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Literal

import trio
from msgspec import Struct

from vaala_executors.errors import StartFailed
from vaala_executors.limits import END_SECONDS
from vaala_executors.local.left_over import end_marked
from vaala_executors.local.outflow import Outflow, wait_open
from vaala_executors.local.supervisor.wire import EXITED, RECORD
from vaala_executors.process import Exit, Process

END_OF_TRANSMISSION = b"\x04"
"""What a terminal in its usual mode takes for end of file."""


class Streams(Struct, frozen=True):
    """Our ends, not blocking. With a PTY both are its controlling side, stdin a duplicate."""

    output: int
    stdin: int | None
    pty: bool


class LocalProcess(Process):
    """When nobody iterates the output, the command waits (see `Outflow`).

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
        self._stdin = streams.stdin
        self._pty = streams.pty
        self._marker = marker
        self._limiter = limiter
        self._exit: Exit | None = None
        self._gone = False
        self._watching = trio.Lock()
        self._ending = trio.Lock()
        self._writing = trio.Lock()
        try:
            self._outflow = Outflow(streams.output, line, self._look, self.wait)
        except OSError as error:
            raise StartFailed(f"no descriptor for a command: {error.strerror}") from error

    @property
    def pid(self) -> int:
        return self._pid

    def output(self) -> AsyncIterator[bytes]:
        return self._outflow

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
                    await wait_open(trio.lowlevel.wait_writable, self._stdin)
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
        if self._pty:
            self._outflow.resize(columns, rows)
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
                    await wait_open(trio.lowlevel.wait_readable, self._line)
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
            self._outflow.close()
            trio.lowlevel.notify_closing(self._line)
            self._line.close()

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

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            trio.lowlevel.notify_closing(self._stdin)
            os.close(self._stdin)
            self._stdin = None
