"""The lock of a data directory: a kernel lock, held for life, so that death releases it.

What the file says about its holder is a hint for people; only the kernel's answer counts (G2-1).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from vaala.dao.errors import StoreLocked
from vaala.discovery import is_owned
from vaala_protocol.base import Malformed, decode, encode

_HINT_BYTES_MAX = 4096


@asynccontextmanager
async def hold_lock(path: Path) -> AsyncGenerator[Callable[[], bool]]:
    """Hold the lock until the block is left; raises `StoreLocked` when another one has it.

    Yields what tells, blocking, whether the locked file is still the one at ``path``: when the
    directory was moved or removed, another owner of the same path may come any moment. The
    descriptor is not inherited by programs that this process starts.
    """
    handle = await trio.to_thread.run_sync(_lock, path)
    try:
        yield partial(_is_at, path, os.fstat(handle))
    finally:
        os.close(handle)


def _is_at(path: Path, locked: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), locked)
    except FileNotFoundError:
        return False
    except OSError:  # not to be told now, such as for lack of descriptors
        return True


def _lock(path: Path) -> int:
    """Return a descriptor that holds the lock; blocks for some hundredths of a second."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _take(handle):
            raise _locked(path, handle)
        hint = {"pid": os.getpid(), "since": time.time_ns() // 1_000_000, "command": _command()}
        os.ftruncate(handle, 0)
        os.pwrite(handle, encode(hint) + b"\n", 0)
    except BaseException:
        os.close(handle)
        raise
    return handle


def holder(path: Path) -> StoreLocked | None:
    """Return what a second owner would be told; None when nobody owns the directory now."""
    if not is_owned(path):
        return None
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _locked(path, handle)
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    """Take the lock; tried a few times, because `is_owned` takes it for a moment to look."""
    for pause_s in (0.0, 0.002, 0.01, 0.05):
        time.sleep(pause_s)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False


def _locked(path: Path, handle: int) -> StoreLocked:
    hint: Any = None
    with contextlib.suppress(Malformed):  # its holder may be writing it just now
        hint = decode(os.pread(handle, _HINT_BYTES_MAX, 0))
    match hint:
        case {"pid": int(pid), "since": int(since), "command": str(command)}:
            return StoreLocked(path.parent, pid=pid, since=since, command=command)
        case _:
            return StoreLocked(path.parent, pid=None, since=None, command=None)


def _command() -> str:
    """Return what this program is, without its arguments: they may hold a prompt or a key."""
    return sys.argv[0] if sys.argv else ""
