"""The log of the command line, and the line on stderr that points to it."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vaala.cli.standard import aside
from vaala.paths import state_directory
from vaala.telemetry.logs import Logs, open_logs
from vaala.telemetry.redact import Redactor, secrets_of


class BugPointer(logging.Handler):
    """Tells in one line on stderr that something broke, and where to read more."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        super().__init__(logging.ERROR)
        self._path = path
        self._redactor = redactor

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().partition("\n")[0]
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"[:200]
        aside(f"vaala: bug: {self._redactor.redact(text)}; see {self._path}")


@contextmanager
def open_log(environ: Mapping[str, str]) -> Generator[Logs]:
    """Send what this process logs, warnings and worse, to the user's file while the block runs."""
    root = logging.getLogger()
    with open_logs(log_file(environ), redactor=Redactor(secrets_of(environ))) as logs:
        pointer = BugPointer(logs.path, logs.redactor)
        root.addHandler(pointer)
        try:
            yield logs
        finally:
            root.removeHandler(pointer)


def log_file(environ: Mapping[str, str]) -> Path:
    return state_directory(environ) / "vaala.log"
