"""Puts the agent's questions to the person who runs the command."""

from __future__ import annotations

from collections.abc import Callable

from vaala.cli.terminal import Terminal
from vaala.tools.text import clean_line
from vaala_protocol.items import Question

LINE_CHARS_MAX = 2000


async def ask_question(
    terminal: Terminal, question: Question, say: Callable[[str], None]
) -> str | None:
    """Return what the person answers; None: nothing, or the terminal was closed."""
    line = await terminal.read_line(_shown(question), say)
    if line is None:
        say("\n")
        return None
    return meant(question, line) or None


def meant(question: Question, typed: str) -> str:
    """Return the answer that somebody means.

    The number of a choice stands for its text; any other text is an answer of its own.
    """
    text = typed.strip()
    if text in question.choices or not (text.isascii() and text.isdigit()):
        return text
    number = int(text[:9])
    return question.choices[number - 1] if 1 <= number <= len(question.choices) else text


def _shown(question: Question) -> str:
    lines = [f"? {clean_line(question.text, LINE_CHARS_MAX)}"]
    lines += [
        f"  {number}  {clean_line(choice, LINE_CHARS_MAX)}"
        for number, choice in enumerate(question.choices, 1)
    ]
    hint = "a number, or your own words" if question.choices else "your answer"
    return "\n".join(lines) + f"\n[{hint}; nothing: no answer] "
