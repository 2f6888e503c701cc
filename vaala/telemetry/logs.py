"""The log: one JSON object a line, without secrets, in a file that is rotated.

Whoever logs hands the record over and goes on: a thread formats, redacts and writes. A disk that
is full, slow or gone costs records, which are counted in the log itself, and nothing else.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from vaala.telemetry.limits import (
    LOG_BATCH_RECORDS_MAX,
    LOG_CLOSING_S,
    LOG_RECORDS_WAITING_MAX,
    LOG_TEXT_CHARS_MAX,
    LOG_TRACEBACK_CHARS_MAX,
)
from vaala.telemetry.log_file import LogFile
from vaala.telemetry.redact import Redactor
from vaala.telemetry.settings import LogSettings
from vaala_protocol.base import encode

PACKAGES = ("vaala", "vaala_protocol", "vaala_storage", "vaala_executors")
"""Whose records the level of the settings is for; of other libraries only warnings are written."""
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "trace", "taskName"}
"""What every record has; the rest are its fields."""


class _Entry(Struct, frozen=True):
    """A record as it is handed to the thread; nothing in it changes any more."""

    at: float
    level: str
    logger: str
    message: str
    fields: Mapping[str, object]
    trace: str | None
    error: BaseException | None


_Waiting: TypeAlias = "queue.Queue[_Entry | threading.Event]"


TraceId: TypeAlias = Callable[[], str | None]


def _no_trace() -> None:
    return None


class Logs(logging.Handler):
    """See `open_logs`."""

    def __init__(self, path: Path, settings: LogSettings, redactor: Redactor) -> None:
        super().__init__()
        self.path = path
        self.redactor = redactor
        self.trace_id: TraceId = _no_trace
        """Names the trace of the task that logs."""
        self.lost = 0
        """How many records could not be written; a full queue counts when it has room again."""
        self._file = LogFile(path, bytes_max=settings.file_bytes_max, files_max=settings.files_max)
        self._dropped = 0
        self._waiting: _Waiting = queue.Queue(LOG_RECORDS_WAITING_MAX)
        self._process: int | None = None
        """The process whose thread writes: after a fork there is none yet."""

    def configure(self, settings: LogSettings) -> None:
        """Take other settings from the next record on."""
        level = settings.level.upper()
        self.setLevel(level)
        for name in PACKAGES:
            logging.getLogger(name).setLevel(level)
        self._file.bytes_max = settings.file_bytes_max
        self._file.files_max = settings.files_max

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record over. Never blocks for the disk, and never raises."""
        try:
            self._put(_entry(record, self.trace_id()))
        except queue.Full:
            self._dropped += 1
        except Exception:  # a message whose arguments do not fit, a thread that cannot start
            self.lost += 1

    def complete(self, timeout_s: float = LOG_CLOSING_S) -> bool:
        """Wait until the records so far are written; False when one of them is not.

        Blocks the thread, at most twice ``timeout_s``.
        """
        if self._process == os.getpid():
            reached = threading.Event()
            try:
                self._waiting.put(reached, timeout=timeout_s)
            except queue.Full:
                return False
            if not reached.wait(timeout_s):
                return False
        return not (self.lost or self._dropped)

    def flush(self) -> None:
        self.complete()

    def _put(self, entry: _Entry) -> None:
        if self._process != os.getpid():
            self._process = os.getpid()
            self._waiting = queue.Queue(LOG_RECORDS_WAITING_MAX)
            threading.Thread(target=self._run, name="vaala log", daemon=True).start()
        self._waiting.put_nowait(entry)

    def _run(self) -> None:
        """Write what waits, for as long as the process lives."""
        waiting = self._waiting
        while True:
            batch = [waiting.get()]
            while len(batch) < LOG_BATCH_RECORDS_MAX and not waiting.empty():
                batch.append(waiting.get())
            entries = [one for one in batch if isinstance(one, _Entry)]
            if entries:
                self._write(entries)
            for one in batch:
                if isinstance(one, threading.Event):
                    one.set()

    def _write(self, entries: list[_Entry]) -> None:
        dropped, self._dropped = self._dropped, 0
        if dropped:
            self.lost += dropped
            entries.append(_drop_note(dropped))
        try:
            self._file.write(b"".join(_line(entry, self.redactor) for entry in entries))
        except Exception:  # nothing that goes wrong with a log may reach the program
            self.lost += len(entries)


@contextmanager
def open_logs(
    path: Path,
    settings: LogSettings | None = None,
    *,
    redactor: Redactor | None = None,
) -> Generator[Logs]:
    """Write what this process logs to ``path`` while the block runs.

    The file (mode 0600) and its directory are made at the first record. ``redactor`` knows the
    secrets. Fields are given as ``log.warning("...", extra={"conversation": ...})``; a field
    ``trace`` goes before what `Logs.trace_id` says.
    Leaving waits at most `LOG_CLOSING_S` for the disk.
    """
    settings = settings or LogSettings()
    logs = Logs(path, settings, redactor or Redactor())
    root = logging.getLogger()
    # Levels belong to the process: another one that is open now, and may close later, set these.
    nested = any(isinstance(handler, Logs) for handler in root.handlers)
    before = {
        name: logging.NOTSET if nested else logging.getLogger(name).level for name in PACKAGES
    }
    logs.configure(settings)
    root.addHandler(logs)
    try:
        yield logs
    finally:
        root.removeHandler(logs)
        logs.complete()
        logs.close()
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _entry(record: logging.LogRecord, trace: str | None) -> _Entry:
    error = record.exc_info[1] if record.exc_info else None
    return _Entry(
        at=record.created,
        level=record.levelname.lower(),
        logger=record.name,
        message=record.getMessage()[:LOG_TEXT_CHARS_MAX],
        fields={
            name: value if isinstance(value, int | float | None) else str(value)
            for name, value in vars(record).items()
            if name not in _OWN
        },
        trace=getattr(record, "trace", None) or trace,
        error=error,
    )


def _drop_note(dropped: int) -> _Entry:
    text = f"{dropped} records were dropped before this one: more came than the disk took"
    now = datetime.now(UTC).timestamp()
    return _Entry(now, "warning", __name__, text, {}, None, None)


def _line(entry: _Entry, redactor: Redactor) -> bytes:
    at = datetime.fromtimestamp(entry.at, UTC)
    line: dict[str, Any] = {
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": entry.level,
        "logger": entry.logger,
        "process": os.getpid(),
        "message": _shown(entry.message, redactor),
    }
    if entry.fields:
        line["fields"] = {
            name: redactor.redact(value[:LOG_TEXT_CHARS_MAX]) if isinstance(value, str) else value
            for name, value in entry.fields.items()
        }
    if entry.trace is not None:
        line["trace"] = entry.trace
    if entry.error is not None:
        text = "".join(traceback.format_exception(entry.error))
        line["exception"] = _shown(text[-LOG_TRACEBACK_CHARS_MAX:], redactor)
    return encode(line) + b"\n"


def _shown(text: str, redactor: Redactor) -> str:
    """Return text that is legal in JSON: names of files may hold bytes that are no UTF-8."""
    return redactor.redact(text).encode("utf-8", "replace").decode()
