"""The standard streams when they do not take what is written: a full disk, nobody who reads."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from vaala.cli.exits import CommandFailed


def aside(line: str) -> None:
    """Write a line to stderr; one that cannot be written there has nowhere else to go."""
    try:
        print(line, file=sys.stderr)
    except OSError:
        drop(2)


def say(text: str) -> None:
    """Write a line to stdout; raises `CommandFailed`, and `BrokenPipeError` as it is."""
    try:
        print(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        drop(1)
        raise unwritable(error) from error


def say_last(text: str) -> None:
    """Write the last line of a command that failed, if stdout takes it: why it failed is told on
    stderr, whatever becomes of this. Raises `BrokenPipeError`."""
    with suppress(CommandFailed):
        say(text)
        flush()


def unwritable(error: OSError) -> CommandFailed:
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return CommandFailed(f"stdout cannot be written: {reason}")


def flush() -> None:
    """Write what waits for stdout; raises as `say`, after which nothing more waits."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop(1)
        raise unwritable(error) from error


def give_up() -> None:
    """Write what waits for stdout if that goes: the command has failed, which was told."""
    try:
        flush()
    except (CommandFailed, BrokenPipeError):
        drop(1)


def drop(descriptor: int) -> None:
    """Let what is still buffered for a stream vanish: the interpreter would fail at its end."""
    target = os.open(os.devnull, os.O_WRONLY)
    os.dup2(target, descriptor)
    os.close(target)
