"""The lock that makes one of many clients start the server, and the others wait for it.

A kernel lock: the death of its holder releases it, and a file that is left over means nothing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from vaala.client import limits
from vaala.client.errors import CannotStart


@asynccontextmanager
async def hold_start_lock(path: Path) -> AsyncGenerator[None]:
    """Hold the lock while the block runs, waiting for it at most `limits.START_LOCK_S`.

    Makes the directory and the file when they are missing. Programs that are started meanwhile do
    not inherit it. Raises `CannotStart`.
    """
    try:
        handle = await trio.to_thread.run_sync(_open, path)
    except OSError as error:
        raise CannotStart(
            f"cannot start a server: {error.filename or path}: {error.strerror}"
        ) from error
    try:
        with trio.move_on_after(limits.START_LOCK_S) as scope:
            # Asked again and again: a thread that waits in the kernel could not be cancelled.
            while True:
                if _take(handle):
                    break
                await trio.sleep(limits.START_LOCK_POLL_S)
        if scope.cancelled_caught:
            raise CannotStart(
                f"another client has been starting a server for {limits.START_LOCK_S:.0f} s "
                f"and holds {path}; end it and try again"
            )
        yield
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
