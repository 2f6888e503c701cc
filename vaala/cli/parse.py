"""From the words of a command line to a namespace, by the table of commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from vaala.cli.commands import COMMANDS, Command, Option
from vaala.cli.exits import USAGE, CommandFailed
from vaala.cli.guess import did_you_mean
from vaala.cli.standard import say

_COUNTS = {"one": None, "optional": "?", "any": "*", "some": "+"}


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process, with a guess at what was meant."""

    def __init__(self, command: Command) -> None:
        super().__init__(allow_abbrev=False)
        self._command = command

    def format_help(self) -> str:
        return _help(self._command)

    def print_help(self, file: object = None) -> None:
        say(self.format_help().rstrip())

    def error(self, message: str) -> NoReturn:
        prefix = "unrecognized arguments: "
        if message.startswith(prefix):
            word = message.removeprefix(prefix).partition("=")[0]
            known = [option.name for option in self._command.options]
            message = f"unknown option {word}{did_you_mean(word, known)}"
        raise CommandFailed(f"{message}; see `vaala {self._command.name} --help`", USAGE)


def unknown_command(word: str) -> CommandFailed:
    guess = did_you_mean(word, [command.name for command in COMMANDS])
    if " " in word.strip() and not word.startswith("-"):
        shown = word if len(word) <= 60 else f"{word[:60]}…"
        return CommandFailed(f'a prompt needs a command: vaala run "{shown}"', USAGE)
    return CommandFailed(f"unknown command {word!r}{guess}; see `vaala --help`", USAGE)


def parse(command: Command, words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; raises `CommandFailed`. ``--help`` prints and raises SystemExit.

    Options may stand between the words of a prompt. What stands behind ``--`` is never an option:
    argparse forgets that in parts, so it does not get to see those words.
    """
    before, after = _split(words)
    parser = _Parser(command)
    for option in command.options:
        _add_option(parser, option)
    namespace, free = parser.parse_known_args(before)
    for word in free:
        if _looks_like_option(word):
            parser.error(f"unrecognized arguments: {word}")
    _assign(parser, command, namespace, [*free, *after])
    return namespace


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before and after the first ``--``."""
    words = list(words)
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place + 1 :]


def _looks_like_option(word: str) -> bool:
    """Tell options from a lone dash, from numbers below zero and from text with a space."""
    return len(word) > 1 and word[0] == "-" and " " not in word and not word[1].isdigit()


def _assign(
    parser: _Parser, command: Command, namespace: argparse.Namespace, words: list[str]
) -> None:
    """Give the words to the arguments in their order; only the last one may take many."""
    for argument in command.arguments:
        many = argument.many in ("any", "some")
        if argument.many in ("one", "some") and not words:
            parser.error(f"the following arguments are required: {argument.name}")
        for word in words[:1]:
            if argument.choices and word not in argument.choices:
                choices = ", ".join(map(repr, argument.choices))
                parser.error(
                    f"argument {argument.name}: invalid choice: {word!r} (choose from {choices})"
                )
        setattr(namespace, argument.name.lower(), words if many else next(iter(words), None))
        words = [] if many else words[1:]
    if words:
        parser.error(f"one word too many: {words[0]!r}")


def _help(command: Command) -> str:
    parser = argparse.ArgumentParser(
        prog=f"vaala {command.name}",
        description=command.summary[0].upper() + command.summary[1:] + ".",
        epilog=command.more or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for argument in command.arguments:
        parser.add_argument(
            argument.name.lower(),
            metavar=argument.name,
            help=argument.help,
            nargs=_COUNTS[argument.many],
        )
    for option in command.options:
        _add_option(parser, option)
    return parser.format_help()


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
