"""From the words of a command line to a namespace, by the table of commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from vaala.cli.commands import COMMANDS, Argument, Command, Option
from vaala.cli.exits import USAGE, CommandFailed

_COUNTS = {"one": None, "optional": "?", "any": "*", "some": "+"}


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process, with a guess at what was meant."""

    def __init__(self, command: Command) -> None:
        super().__init__(
            prog=f"vaala {command.name}",
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=command.more or None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._command = command

    def error(self, message: str) -> NoReturn:
        prefix = "unrecognized arguments: "
        if message.startswith(prefix):
            word = message.removeprefix(prefix).split()[0].partition("=")[0]
            known = [option.name for option in self._command.options]
            message = f"unknown option {word}{did_you_mean(word, known)}"
            if not word.startswith("-"):
                message = f"one word too many: {word!r}"
        raise CommandFailed(f"{message}; see `vaala {self._command.name} --help`", USAGE)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def unknown_command(word: str) -> CommandFailed:
    guess = did_you_mean(word, [command.name for command in COMMANDS])
    return CommandFailed(f"unknown command {word!r}{guess}; see `vaala --help`", USAGE)


def parse(command: Command, words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; raises `CommandFailed`. ``--help`` prints and raises SystemExit."""
    parser = _Parser(command)
    for argument in command.arguments:
        _add_argument(parser, argument)
    for option in command.options:
        _add_option(parser, option)
    # Options may stand between the words of a prompt, so both are taken as they come.
    return parser.parse_intermixed_args(words)


def _add_argument(parser: argparse.ArgumentParser, argument: Argument) -> None:
    parser.add_argument(
        argument.name.lower(),
        metavar=argument.name,
        help=argument.help,
        nargs=_COUNTS[argument.many],
        choices=argument.choices or None,
    )


def _add_option(parser: argparse.ArgumentParser, option: Option) -> None:
    names = [name for name in (option.short, option.name) if name]
    if not option.metavar:
        parser.add_argument(*names, help=option.help, action="store_true", dest=option.field)
        return
    parser.add_argument(
        *names,
        help=option.help + (f": {', '.join(option.choices)}" if option.choices else ""),
        metavar=option.metavar,
        choices=option.choices or None,
        action="append" if option.repeat else "store",
        dest=option.field,
    )
