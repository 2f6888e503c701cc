"""Runs a command's trio program and turns what it raises into one line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from vaala.cli.connecting import CONFIG_UNUSABLE
from vaala.cli.exits import FAILED, INTERRUPTED, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.logs import open_log
from vaala.cli.output import ReaderGone
from vaala.paths import NoHome
from vaala_protocol.errors import (
    BadRequest,
    Incompatible,
    ModelUnreachable,
    NotFound,
    Refused,
    Unreadable,
)

log = logging.getLogger(__name__)

_EXPECTED = (CommandFailed, BrokenPipeError, NoHome)
"""What `vaala.cli.program.main` turns into a line."""


def run_program(program: Callable[[], Awaitable[int]]) -> int:
    """Return the program's exit code; raises `CommandFailed`, or what else is no bug as it is.

    A bug is told in one line; its traceback goes to the log.
    """
    with open_log(os.environ) as logs:
        try:
            return trio.run(program)
        except BaseException as error:
            known = mapped(error)
            if isinstance(known, _EXPECTED):
                raise known from error
            log.critical("the command failed", exc_info=error)
            if not logs.complete():
                traceback.print_exception(error)
            return FAILED


def mapped(error: BaseException) -> BaseException:
    """Return what to raise in place of an error; an unknown one is returned as it is."""
    match error:
        case CommandFailed() | BrokenPipeError() | NoHome():
            return error
        case BaseExceptionGroup():
            return _first(error)
        case ReaderGone():
            return BrokenPipeError()
        case KeyboardInterrupt():
            return CommandFailed("interrupted", INTERRUPTED)
        case Unreadable():  # before storage errors: one may be both, and its text says it all
            return CommandFailed(str(error), UNREACHABLE)
        case _ if (known := _of_runtime(error)) is not None:
            return known
        case ModelUnreachable() | Incompatible():
            return CommandFailed(str(error), UNREACHABLE)
        case BadRequest() | NotFound():
            return CommandFailed(str(error), USAGE)
        case Refused():
            return CommandFailed(str(error), FAILED)
        case _:
            return error


def _of_runtime(error: BaseException) -> CommandFailed | None:
    """Return what an error of a runtime in this process, or of a connection, means."""
    if _is(error, "vaala.config.errors", "ConfigError"):
        lines = "\n  ".join(map(str, getattr(error, "problems", ())))
        return CommandFailed(f"{CONFIG_UNUSABLE}\n  {lines}", USAGE)
    if _is(error, "vaala_storage.errors", "StorageError"):
        return CommandFailed(f"the data directory: {error}", UNREACHABLE)
    if _is(error, "vaala.dao.errors", "StoreLocked"):
        return CommandFailed(_in_use(error), UNREACHABLE)
    if _is(error, "vaala.client.errors", "ClientError"):
        return CommandFailed(str(error), UNREACHABLE)
    return None


def _in_use(locked: BaseException) -> str:
    """Say who has the data, without where that program is installed."""
    pid, file = getattr(locked, "pid", None), getattr(locked, "command", None) or ""
    ours = file.endswith(("/vaala", "/vaala/__main__.py"))
    who = "another process" if pid is None else f"process {pid}"
    who = f"{who} ({'vaala' if ours else Path(file).name})" if file else who
    text = f"{getattr(locked, 'path', 'the data')} is in use by {who}"
    return f"{text}: leave out --in-process, end it with `vaala stop`, or choose another --data-dir"


def _is(error: BaseException, module: str, name: str) -> bool:
    """Tell whether an error is of a class whose module may never have been imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(error, kind)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error that ends the command; a bug in the group comes before all else."""
    errors = [mapped(error) for error in group.exceptions]
    if all(isinstance(error, _EXPECTED) for error in errors):
        return errors[0]
    return group
