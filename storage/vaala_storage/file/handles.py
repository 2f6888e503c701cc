"""Open descriptors of streams at rest: the least recently used one is closed for a new one."""

from __future__ import annotations

import resource
from collections import OrderedDict
from contextlib import suppress

from vaala_storage.file.pool import Job, Pool
from vaala_storage.file.system import Files
from vaala_storage.limits import OPEN_FILES_MAX


def open_files_max() -> int:
    """Return how many descriptors storage may keep: a quarter of the process's, at most 256."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return OPEN_FILES_MAX
    return max(1, min(OPEN_FILES_MAX, soft // 4))


class Handles:
    """Owned by whoever is in it: a stream takes its handle out while a job uses it."""

    def __init__(self, files: Files, pool: Pool, count_max: int) -> None:
        self._files = files
        self._pool = pool
        self._count_max = count_max
        self._open: OrderedDict[object, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def take(self, owner: object) -> int | None:
        return self._open.pop(owner, None)

    def put(self, owner: object, handle: int) -> None:
        self._open[owner] = handle
        if len(self._open) > self._count_max:
            self.close(self._open.popitem(last=False)[1])

    def drop(self, owner: object) -> None:
        self.close(self._open.pop(owner, None))

    def close(self, handle: int | None) -> None:
        """Close in the background: a close can wait for the device too."""
        if handle is not None:
            self._pool.submit(lambda _: self._close(handle), _ignore)

    def drop_all(self) -> None:
        while self._open:
            self.close(self._open.popitem()[1])

    def _close(self, handle: int) -> None:
        with suppress(OSError):
            self._files.close(handle)


def _ignore(job: Job) -> None:
    """What a close says is of no use: the data was synced before."""
