"""`Person`: somebody at a terminal who is asked one thing after the other."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from vaala.cli.exits import FAILED, CommandFailed
from vaala.cli.terminal import Terminal
from vaala.tools.text import clean_line

LINE_CHARS_MAX = 200


class Person:
    """Raises `CommandFailed` when the terminal is closed in place of an answer."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def ask(self, question: str, default: str = "") -> str:
        """Return a line without blanks around it; an empty one stands for ``default``."""
        hint = f" [{clean_line(default, LINE_CHARS_MAX)}]" if default else ""
        line = await self._terminal.read_line(f"{question}{hint}: ", _say)
        return _typed(line) or default

    async def ask_hidden(self, question: str) -> str:
        """Return a line that is not shown while it is typed."""
        return _typed(await self._terminal.read_hidden(f"{question} (not shown): ", _say))

    async def agrees(self, question: str, *, default: bool) -> bool:
        """Return whether the answer is yes; any other word than a yes is a no."""
        line = _typed(
            await self._terminal.read_line(f"{question} [{'Y/n' if default else 'y/N'}] ", _say)
        )
        return line.lower() in ("y", "yes") if line else default

    async def choose(self, question: str, rows: Sequence[tuple[str, str]], default: str) -> str:
        """Return what was chosen of names with a word on each, by number or name; or other text."""
        width = max(len(name) for name, _ in rows)
        for number, (name, about) in enumerate(rows, 1):
            shown = clean_line(f"{name:{width}}  {about}".rstrip(), LINE_CHARS_MAX)
            _say(f"{number:4}  {shown}\n")
        answer = await self.ask(f"{question}, a number or a name", default)
        if answer.isascii() and answer.isdigit() and 1 <= int(answer[:9]) <= len(rows):
            return rows[int(answer) - 1][0]
        return answer


def _typed(line: str | None) -> str:
    if line is None:
        _say("\n")
        raise CommandFailed("the terminal was closed; nothing was changed", FAILED)
    return line.strip()


def _say(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
