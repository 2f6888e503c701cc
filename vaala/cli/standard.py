"""The standard streams when they do not take what is written: a full disk, nobody who reads."""

from __future__ import annotations

import os
import sys

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


def unwritable(error: OSError) -> CommandFailed:
    return CommandFailed(f"stdout cannot be written: {error.strerror or error}")


def flush() -> None:
    """Write what waits for stdout; raises as `say`, after which nothing more waits."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop(1)
        raise unwritable(error) from error


def drop(descriptor: int) -> None:
    """Let what is still buffered for a stream vanish: the interpreter would fail at its end."""
    target = os.open(os.devnull, os.O_WRONLY)
    os.dup2(target, descriptor)
    os.close(target)
