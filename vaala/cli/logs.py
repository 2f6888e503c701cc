"""The log file of the command line: what is no answer and no short note goes there."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vaala.cli.standard import aside
from vaala.paths import state_directory

LOG_BYTES_MAX = 4 * 1024 * 1024
"""A longer file is put aside, once, when a command starts."""


class LogFile(logging.FileHandler):
    """Created, for the user alone, at the first record; one record is one write."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self.path = path
        self.failed = False
        """A record could not be written."""

    def _open(self):  # type: ignore[no-untyped-def] # the library's own type is private
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size > LOG_BYTES_MAX:
            self.path.replace(self.path.with_suffix(".old.log"))
        os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        return super()._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # opening is not covered by the library's own handling
            self.failed = True

    def handleError(self, record: logging.LogRecord) -> None:
        """A log that cannot be written is no reason to fail, or to print a traceback."""
        self.failed = True


class BugPointer(logging.Handler):
    """Tells in one line on stderr that something broke, and where to read more."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.ERROR)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().partition("\n")[0]
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"[:200]
        aside(f"vaala: bug: {text}; see {self._path}")


@contextmanager
def open_log(environ: Mapping[str, str]) -> Generator[LogFile]:
    """Send what this process logs, warnings and worse, to the user's file while the block runs."""
    handler = LogFile(state_directory(environ) / "vaala.log")
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    )
    pointer = BugPointer(handler.path)
    root = logging.getLogger()
    root.addHandler(handler)
    root.addHandler(pointer)
    try:
        yield handler
    finally:
        root.removeHandler(pointer)
        root.removeHandler(handler)
        handler.close()
