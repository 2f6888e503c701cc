"""`FaultyFiles`: any `Files` with faults, planned or drawn from a seed, and a record of calls."""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from enum import Enum
from random import Random
from typing import TypeVar

from msgspec import Struct

from vaala_storage.faults.memory import MemoryFiles
from vaala_storage.file.pool import Hang
from vaala_storage.file.system import DirectoryEntry, Files, FileState

T = TypeVar("T")

CALLS_KEPT_MAX = 10_000


class Fault(Enum):
    FULL = "ENOSPC"
    QUOTA = "EDQUOT"
    IO = "EIO; a sync that fails so has dropped what it was to write"
    READ_ONLY = "EROFS"
    NO_LINKS = "EPERM, as of a file system without hard links"
    SHORT = "half of a write is taken"
    SILENT = "the call does not return until `FaultyFiles.release`"
    POWER_CUT = "this call and all that follow raise `PowerCut`"


_NUMBERS = {
    Fault.FULL: errno.ENOSPC,
    Fault.QUOTA: errno.EDQUOT,
    Fault.IO: errno.EIO,
    Fault.READ_ONLY: errno.EROFS,
    Fault.NO_LINKS: errno.EPERM,
}

_ANYWHERE = (Fault.IO,)
_DRAWN = {
    "write": (Fault.FULL, Fault.QUOTA, Fault.IO, Fault.SHORT),
    "sync_data": (Fault.IO, Fault.SILENT),
    "open_append": (Fault.FULL, Fault.IO),
    "open_new": (Fault.FULL, Fault.IO),
    "make_directory": (Fault.FULL, Fault.IO),
    "link": (Fault.FULL, Fault.IO),
}
"""Which faults a seed can draw for a call; the others have `Fault.IO`."""

_OPENING = {"open_append", "open_new", "make_directory", "rename", "link"}
_WRITING = {"write", "truncate", "sync_data", "sync_directory", "remove", "remove_directory"}
CHANGING = frozenset(_OPENING | _WRITING)
"""Calls that a seed draws faults for, and that count for `FaultyFiles.cut_power`."""


class PowerCut(BaseException):
    """The machine is off. No handler of errors may take it for one of them."""


class Call(Struct, frozen=True):
    name: str
    path: str


class _Planned(Struct):
    call: str
    fault: Fault
    skip: int


class FaultyFiles(Files):
    """Faults come from `plan` and `cut_power`, and with ``rate`` (0 to 1) from ``random``.

    ``drawn`` limits what is drawn; `Fault.SILENT` is drawn only when it is named there, since
    someone must then turn the clock.
    """

    def __init__(
        self,
        inner: Files,
        *,
        random: Random | None = None,
        rate: float = 0.0,
        drawn: Collection[Fault] = frozenset(Fault) - {Fault.SILENT},
    ) -> None:
        self.blocking = inner.blocking
        self.calls: deque[Call] = deque(maxlen=CALLS_KEPT_MAX)
        self.rate = rate
        self._inner = inner
        self._random = random or Random(0)
        self._drawn = drawn
        self._planned: list[_Planned] = []
        self._paths: dict[int, str] = {}
        self._power: int | None = None
        self._released = threading.Event()
        self.silent = threading.Semaphore(0)
        """Released once for each call that goes silent."""

    def plan(self, call: str, fault: Fault, *, skip: int = 0) -> None:
        """Let a coming call of this name fail, once, after ``skip`` good ones."""
        self._planned.append(_Planned(call, fault, skip))

    def cut_power(self, after: int) -> None:
        """Cut the power after so many further changing calls."""
        self._power = after

    def restart(self, random: Random) -> None:
        """Crash the files in memory that are underneath, and turn the power on again."""
        assert isinstance(self._inner, MemoryFiles)
        self._inner.crash(random)
        self._power = None
        self._planned.clear()
        self._paths.clear()

    def release(self) -> None:
        """Let silent calls return, in their threads."""
        self._released.set()

    def _run(
        self,
        name: str,
        path: str,
        call: Callable[[], T],
        failed: Callable[[Fault], T] | None = None,
    ) -> T:
        """Make a call or its fault; ``failed`` does what a fault does beside raising."""
        self.calls.append(Call(name, path))
        fault = self._fault(name)
        match fault:
            case None:
                return call()
            case Fault.POWER_CUT:
                raise PowerCut
            case Fault.SILENT:
                self.silent.release()
                if not self.blocking:
                    raise Hang
                self._released.wait()
                return call()
            case Fault.SHORT if failed is not None:
                return failed(fault)
            case _:
                if failed is not None:
                    failed(fault)
                number = _NUMBERS.get(fault, errno.EIO)
                raise OSError(number, os.strerror(number), path)

    def _fault(self, name: str) -> Fault | None:
        if self._power is not None:
            if self._power == 0:
                return Fault.POWER_CUT
            self._power -= name in CHANGING
        for planned in self._planned:
            if planned.call == name:
                if planned.skip:
                    planned.skip -= 1
                    break
                self._planned.remove(planned)
                return planned.fault
        if name in CHANGING and self._random.random() < self.rate:
            possible = [f for f in _DRAWN.get(name, _ANYWHERE) if f in self._drawn]
            return self._random.choice(possible) if possible else None
        return None

    def _opened(self, name: str, path: str, call: Callable[[], int]) -> int:
        handle = self._run(name, path, call)
        self._paths[handle] = path
        return handle

    def open_read(self, path: str) -> int:
        return self._opened("open_read", path, lambda: self._inner.open_read(path))

    def open_append(self, path: str, *, create: bool) -> int:
        return self._opened(
            "open_append", path, lambda: self._inner.open_append(path, create=create)
        )

    def open_new(self, path: str) -> int:
        return self._opened("open_new", path, lambda: self._inner.open_new(path))

    def close(self, handle: int) -> None:
        path = self._paths.pop(handle, "?")
        self._run("close", path, lambda: self._inner.close(handle))

    def state(self, handle: int) -> FileState:
        return self._run("state", self._paths[handle], lambda: self._inner.state(handle))

    def read(self, handle: int, offset: int, length: int) -> bytes:
        return self._run(
            "read", self._paths[handle], lambda: self._inner.read(handle, offset, length)
        )

    def write(self, handle: int, data: bytes) -> int:
        """A fault of a write may leave a part of it in the file, as a real one may."""
        return self._run(
            "write",
            self._paths[handle],
            lambda: self._inner.write(handle, data),
            lambda _: self._inner.write(handle, data[: len(data) // 2]),
        )

    def truncate(self, handle: int, size: int) -> None:
        self._run("truncate", self._paths[handle], lambda: self._inner.truncate(handle, size))

    def sync_data(self, handle: int) -> None:
        def failed(_: Fault) -> None:
            if isinstance(self._inner, MemoryFiles):
                self._inner.fail_sync(handle)

        path = self._paths[handle]
        self._run("sync_data", path, lambda: self._inner.sync_data(handle), failed)

    def sync_directory(self, path: str) -> None:
        self._run("sync_directory", path, lambda: self._inner.sync_directory(path))

    def make_directory(self, path: str) -> None:
        self._run("make_directory", path, lambda: self._inner.make_directory(path))

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        return self._run("list_directory", path, lambda: self._inner.list_directory(path))

    def rename(self, old: str, new: str) -> None:
        self._run("rename", new, lambda: self._inner.rename(old, new))

    def link(self, old: str, new: str) -> None:
        self._run("link", new, lambda: self._inner.link(old, new))

    def remove(self, path: str) -> None:
        self._run("remove", path, lambda: self._inner.remove(path))

    def remove_directory(self, path: str) -> None:
        self._run("remove_directory", path, lambda: self._inner.remove_directory(path))
