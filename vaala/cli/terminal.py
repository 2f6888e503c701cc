"""`Terminal`: a person at the other end, who can be asked."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager

import trio

LINE_BYTES_MAX = 4096
"""What the kernel keeps of one typed line."""


class Terminal:
    """Reads lines from a terminal without ever blocking the loop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def in_foreground(self) -> bool:
        """Tell whether this process may read: in the background a read would stop it."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return False

    async def read_line(self, prompt: str, say: Callable[[str], None]) -> str | None:
        """Show a prompt and return the line that is typed behind it; None at end of file.

        What was typed before is thrown away: it was no answer to a question that nobody had seen.
        Cancel: nothing is read.
        """
        termios.tcflush(self._descriptor, termios.TCIFLUSH)
        say(prompt)
        # A terminal hands out whole lines, so that readable means that a line is there.
        await trio.lowlevel.wait_readable(self._descriptor)
        try:
            data = os.read(self._descriptor, LINE_BYTES_MAX)
        except OSError:
            return None
        return data.decode("utf-8", "replace").rstrip("\r\n") if data else None

    async def read_hidden(self, prompt: str, say: Callable[[str], None]) -> str | None:
        """Like `read_line`, for what nobody may see; a line longer than the kernel keeps is cut.

        Cancel: what is typed is shown again.
        """
        before = termios.tcgetattr(self._descriptor)
        hidden = termios.tcgetattr(self._descriptor)
        hidden[3] &= ~termios.ECHO
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, hidden)
        try:
            return await self.read_line(prompt, say)
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)
            say("\n")  # the one that was typed was not shown


@contextmanager
def open_terminal() -> Generator[Terminal | None]:
    """Yield the terminal of the person who reads stderr; None when there is none.

    With a prompt piped to stdin the person can still be asked on the terminal itself.
    """
    if not sys.stderr.isatty():
        yield None
    elif sys.stdin.isatty():
        yield Terminal(sys.stdin.fileno())
    else:
        try:
            descriptor = os.open(os.ttyname(sys.stderr.fileno()), os.O_RDONLY | os.O_NOCTTY)
        except OSError:
            yield None
            return
        try:
            yield Terminal(descriptor)
        finally:
            os.close(descriptor)
