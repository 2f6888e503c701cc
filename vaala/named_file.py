"""Files that a client names: any path of this machine, whatever is there.

A pipe, a device or a dead network file system can hold up whoever opens or reads it for ever, and
no thread can be ended. So only regular files are opened, and a read that hangs is left behind by
a cancel, in threads that nothing else needs.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import TypeVar

import trio

T = TypeVar("T")


def open_regular(path: Path) -> FileIO:
    """Open a regular file for reading, unbuffered; what is none is refused without waiting for it.

    Raises OSError, and ValueError for a path that cannot be one.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("is not a regular file")
        return FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


class NamedFile:
    """A regular file to be read, in threads of ``limiter``; closed when the block is left."""

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._file: FileIO | None = None
        self._in_use = threading.Lock()
        self._left = False

    def __enter__(self) -> NamedFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Close it; a thread that is still at work does that when it comes back."""
        self._left = True
        if self._in_use.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._in_use.release()

    async def open(self, path: Path) -> None:
        """Open it; see `open_regular` for what is raised. Cancel: at once."""

        def open_it() -> None:
            self._file = open_regular(path)

        await self._in_thread(open_it)

    async def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none at the end. Raises OSError. Cancel: at once."""
        file = self._file
        assert file is not None
        return await self._in_thread(lambda: file.read(size)) or b""

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def do() -> T:
            try:
                with self._in_use:
                    return work()
            finally:
                if self._left:
                    self._close()

        return await trio.to_thread.run_sync(do, abandon_on_cancel=True, limiter=self._limiter)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
