"""`main`: chooses the command, and turns whatever happens into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vaala.cli.commands import HELP_OPTIONS, VERSION_OPTIONS, Command, find
from vaala.cli.exits import (
    DONE,
    INTERRUPTED,
    READER_GONE,
    UNREACHABLE,
    USAGE,
    CommandFailed,
)
from vaala.cli.standard import aside, drop, flush, give_up, say, say_last

if TYPE_CHECKING:
    from argparse import Namespace


def main(words: Sequence[str] | None = None) -> int:
    """Run the command that ``words`` (default: those of the process) name; return its exit code."""
    words = sys.argv[1:] if words is None else words
    _open_standard_files()
    try:
        code = _run(words)
        flush()
        return code
    except CommandFailed as error:
        aside(f"vaala: {error.message}")
        code = error.code
    except BrokenPipeError:
        drop(1)
        return READER_GONE
    except KeyboardInterrupt:
        code = INTERRUPTED
    give_up()
    return code


def _run(words: Sequence[str]) -> int:
    if not words:
        return _bare()
    if words[0] in (*HELP_OPTIONS, "help"):
        return _help(words[1:])
    if words[0] in VERSION_OPTIONS:
        from vaala.cli.overview import version_text

        say(version_text())
        return DONE
    return _command(words[0], words[1:])


def _bare() -> int:
    from vaala.cli.overview import next_steps

    if sys.stdin.isatty() and sys.stdout.isatty():
        say(next_steps())
        return DONE
    aside("vaala: no command\n" + next_steps())
    return USAGE


def _help(words: Sequence[str]) -> int:
    from vaala.cli.overview import help_text

    if words:
        return _command(words[0], ["--help"])
    say(help_text())
    return DONE


def _command(name: str, words: Sequence[str]) -> int:
    from vaala.cli.parse import unknown_command

    command = find(name)
    try:
        if command is None:
            raise unknown_command(name)
        arguments = _parsed(command, words)
        return _called(command, arguments)
    except SystemExit as end:  # argparse ends so after it has printed help
        return end.code if isinstance(end.code, int) else USAGE


def _called(command: Command, arguments: Namespace) -> int:
    from vaala.paths import NoHome

    module, _, function = command.entry.partition(":")
    try:
        code: int = getattr(importlib.import_module(module), function)(arguments)
    except NoHome as error:
        raise CommandFailed(str(error), UNREACHABLE) from error
    return code


def _parsed(command: Command, words: Sequence[str]) -> Namespace:
    """Parse; whoever reads the JSON of a run reads there too that it could not begin."""
    from vaala.cli.parse import parse

    try:
        return parse(command, words)
    except CommandFailed as error:
        if command.name == "run" and "--json" in words and "--" not in words:
            from vaala.cli.json_view import error_line

            say_last(error_line(error.message, error.code))
        raise


def _open_standard_files() -> None:
    """Make sure that 0, 1 and 2 are open: else the next file that is opened becomes stdout.

    In place of a stdout that is closed there is one that takes nothing, so that an answer is not
    lost in silence; notes for stderr are.
    """
    for descriptor, flags, name in (
        (0, os.O_RDONLY, "stdin"),
        (1, os.O_RDONLY, "stdout"),
        (2, os.O_WRONLY, "stderr"),
    ):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "r" if descriptor == 0 else "w"))
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, and no traceback.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
