"""A file of lines for its owner alone, rotated by size. Several processes may write to one.

Everything here blocks, and is called by the thread of `vaala.telemetry.logs` alone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_MODE = 0o600


class LogFile:
    """``path`` is the current file; those before it are ``path.1`` (the newest) and up."""

    def __init__(self, path: Path, *, bytes_max: int, files_max: int) -> None:
        self.path = path
        self.bytes_max = bytes_max
        self.files_max = files_max
        self._descriptor: int | None = None
        self._torn = False

    def write(self, lines: bytes) -> None:
        """Append whole lines in one write. Raises OSError; part of them may be there then."""
        descriptor = self._current(len(lines))
        if self._torn:
            lines = b"\n" + lines
        view = memoryview(lines)
        self._torn = True
        while view:
            view = view[os.write(descriptor, view) :]
        self._torn = False

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _current(self, more: int) -> int:
        """Return the file at the path, opened or begun anew where that is due."""
        if self._descriptor is not None and not self._is_at_path(self._descriptor):
            self.close()
        if self._descriptor is None:
            self._descriptor = self._open()
        size = os.fstat(self._descriptor).st_size
        if size and size + more > self.bytes_max:
            with _locked(self._descriptor):
                if self._is_at_path(self._descriptor):  # else another process has done it
                    self._rotate()
            self.close()
            self._descriptor = self._open()
        return self._descriptor

    def _open(self) -> int:
        self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return os.open(self.path, flags, _MODE)

    def _is_at_path(self, descriptor: int) -> bool:
        """Tell whether the path still names the open file: it may be moved or removed."""
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(descriptor))

    def _rotate(self) -> None:
        if self.files_max == 1:
            self.path.unlink()
            return
        for number in range(self.files_max - 1, 0, -1):
            older = self._numbered(number)
            newer = self._numbered(number - 1) if number > 1 else self.path
            if newer.exists():
                newer.replace(older)

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


@contextmanager
def _locked(descriptor: int) -> Generator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
