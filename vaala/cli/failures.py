"""Runs a command's trio program and turns what it raises into one line and an exit code."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Awaitable, Callable

import trio

from vaala.cli.exits import FAILED, INTERRUPTED, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.logs import open_log
from vaala.cli.output import ReaderGone
from vaala.config.errors import ConfigError
from vaala.dao.errors import StoreLocked
from vaala.models.base import ModelUnreachable
from vaala_protocol.errors import BadRequest, NotFound, Refused
from vaala_storage.errors import StorageError

log = logging.getLogger(__name__)


def run_program(program: Callable[[], Awaitable[int]]) -> int:
    """Return the program's exit code; raises `CommandFailed`, and `BrokenPipeError` as it is.

    A bug is told in one line; its traceback goes to the log.
    """
    with open_log(os.environ) as logs:
        try:
            return trio.run(program)
        except BaseException as error:
            known = mapped(error)
            if isinstance(known, CommandFailed | BrokenPipeError):
                raise known from error
            log.critical("the command failed", exc_info=error)
            if not logs.complete():
                traceback.print_exception(error)
            return FAILED


def mapped(error: BaseException) -> BaseException:
    """Return what to raise in place of an error; an unknown one is returned as it is."""
    match error:
        case CommandFailed() | BrokenPipeError():
            return error
        case BaseExceptionGroup():
            return _first(error)
        case ReaderGone():
            return BrokenPipeError()
        case KeyboardInterrupt():
            return CommandFailed("interrupted", INTERRUPTED)
        case ConfigError(problems=problems):
            lines = "\n  ".join(map(str, problems))
            return CommandFailed(f"the configuration cannot be used:\n  {lines}", USAGE)
        case StoreLocked():
            return CommandFailed(str(error), UNREACHABLE)
        case ModelUnreachable():
            return CommandFailed(str(error), UNREACHABLE)
        case BadRequest() | NotFound():
            return CommandFailed(str(error), USAGE)
        case Refused():
            return CommandFailed(str(error), FAILED)
        case StorageError():
            return CommandFailed(f"the data directory: {error}", UNREACHABLE)
        case _:
            return error


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error that ends the command; a bug in the group comes before all else."""
    errors = [mapped(error) for error in group.exceptions]
    known = (CommandFailed, BrokenPipeError)
    if all(isinstance(error, known) for error in errors):
        return errors[0]
    return group
