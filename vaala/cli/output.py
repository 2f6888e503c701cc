"""`Output`: stdout and stderr, written in one order by a thread, so that no reader stalls the loop.

What is put is written in that order and never dropped. A reader that stops reading holds back
`wait_room`, and through it whoever fills the output; the loop itself goes on.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Final, TextIO

import trio

from vaala.cli.standard import unwritable

STDOUT: Final = 1
STDERR: Final = 2
WAITING_BYTES_MAX = 1024 * 1024
CLOSING_S = 5.0
"""How long the end of a command waits for a reader that does not read."""


class ReaderGone(Exception):
    """Nobody reads stdout any more."""


class Output:
    """``run`` is its task; ``drain`` waits until all is written."""

    def __init__(self, *, out: int = STDOUT, err: int = STDERR) -> None:
        self._ends = {STDOUT: out, STDERR: err}
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._held_back: set[int] = set()
        self._held: deque[tuple[int, bytes]] = deque()
        self._more = trio.Event()
        self._room = trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        self._room.set()

    def put(self, target: int, text: str) -> None:
        """Queue text; never blocks. While something is asked it stays behind the question."""
        if not text:
            return
        self._put(target, text, self._held if target in self._held_back else self._waiting)

    @contextmanager
    def asking(self) -> Generator[Callable[[str], None]]:
        """Hold back what is put for the screen while the block runs; what is yielded is not.

        Only a terminal is a screen: who reads stdout otherwise sees no question.
        """
        self._held_back = {STDERR, STDOUT} if sys.stdout.isatty() else {STDERR}
        try:
            yield partial(self._put, STDERR, into=self._waiting)
        finally:
            self._held_back = set()
            self._waiting += self._held
            self._held.clear()
            if self._waiting:
                self._wake()

    def _put(self, target: int, text: str, into: deque[tuple[int, bytes]]) -> None:
        data = text.encode(_encoding(target), "replace")
        into.append((target, data))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > WAITING_BYTES_MAX and self._room.is_set():
            self._room = trio.Event()
        if into is self._waiting:
            self._wake()

    def _wake(self) -> None:
        if self._idle.is_set():
            self._idle = trio.Event()
        self._more.set()

    async def wait_room(self) -> None:
        """Wait while too much is queued. Cancel: only stops waiting."""
        await self._room.wait()

    async def run(self) -> None:
        """Write what is put, until cancelled; raises `ReaderGone`, `CommandFailed` for stdout."""
        while True:
            await self._more.wait()
            self._more = trio.Event()
            while self._waiting:
                target, data = self._take()
                # A write can block for as long as the reader likes: a cancel leaves it behind.
                error = await trio.to_thread.run_sync(
                    _write, self._ends[target], data, abandon_on_cancel=True
                )
                if error is not None and target == STDOUT:  # notes are for whoever listens
                    gone = isinstance(error, BrokenPipeError)
                    raise ReaderGone if gone else unwritable(error)
            self._idle.set()

    async def drain(self) -> None:
        """Wait until everything is written, but not for ever on a reader that does not read."""
        with trio.move_on_after(CLOSING_S):
            await self._idle.wait()

    def _take(self) -> tuple[int, bytes]:
        """Take all that waits for the next target, so that many small texts are one write."""
        target = self._waiting[0][0]
        parts: list[bytes] = []
        while self._waiting and self._waiting[0][0] == target:
            parts.append(self._waiting.popleft()[1])
        data = b"".join(parts)
        self._waiting_bytes -= len(data)
        if self._waiting_bytes <= WAITING_BYTES_MAX:
            self._room.set()
        return target, data


def _write(descriptor: int, data: bytes) -> OSError | None:
    """Write all of it, or return why that cannot be done."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except OSError as error:
            return error
    return None


def _encoding(target: int) -> str:
    stream: TextIO = sys.stdout if target == STDOUT else sys.stderr
    return stream.encoding or "utf-8"
