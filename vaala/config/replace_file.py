"""Replaces a file of the configuration when it is still what was read; nothing is ever half there.

Between processes of vaala a lock on the directory makes looking and replacing one step. An editor
knows no lock: what it writes in the microseconds between the two would be lost, and nothing else.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from vaala.config.document import read_file
from vaala.config.errors import ConfigError, Problem
from vaala.config.limits import LOCK_POLL_S, LOCK_WAIT_S

PRIVATE = 0o600


class Changed(Exception):
    """The file is not what was read any more; nothing was done."""


@contextmanager
def locked(directory: Path) -> Generator[None]:
    """Keep other processes of vaala from editing while the block runs; makes the directory.

    Blocks the thread, at most `LOCK_WAIT_S`. Raises `ConfigError`.
    """
    try:
        directory.mkdir(0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        text = f"cannot be used: {error.strerror}"
        raise ConfigError((Problem(directory, None, "", text),)) from error
    try:
        _lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                text = f"another process has been changing it for {LOCK_WAIT_S:g} s; try again"
                raise ConfigError((Problem(directory, None, "", text),)) from None
            time.sleep(LOCK_POLL_S)


def replace_file(file: Path, before: bytes | None, after: bytes, *, private: bool) -> None:
    """Put ``after`` in place of ``before``; None: there was no file. Durable on return.

    A symbolic link stays and its target is replaced; the mode stays, but that of a ``private``
    file and of a new one is `PRIVATE`. To be called under `locked`. Raises `Changed`, and
    `ConfigError` when the file cannot be written: then it is as it was.
    """
    target = Path(os.path.realpath(file))
    try:
        mode = PRIVATE if private else _mode(target)
        temporary = _written(target, after, mode)
        try:
            if read_file(file) != before:
                raise Changed
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_directory(target.parent)
    except OSError as error:
        text = f"cannot be written: {error.strerror}"
        raise ConfigError((Problem(file, None, "", text),)) from error


def _mode(target: Path) -> int:
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return PRIVATE


def _written(target: Path, content: bytes, mode: int) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fchmod(opened.fileno(), mode)
            os.fsync(opened.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    return Path(name)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
