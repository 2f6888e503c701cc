"""Exit codes of every command, and the error that carries one."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
"""A call was refused by the mode or for lack of a person, the model refused, or a limit was
reached. The "n" of a person is an answer: the run goes on and ends by its outcome."""
UNREACHABLE: Final = 4
"""What is needed cannot be started or reached."""
INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""Nobody reads stdout any more: what a program ends with that SIGPIPE ended."""


class CommandFailed(Exception):
    """Ends the command: ``message`` names the input and the way out, ``code`` is the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
