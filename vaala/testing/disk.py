"""`SimulatedDisk`: a store on files in memory that outlives its runtimes, with faults by a seed.

What a runtime leaves at a crash is exactly what its files and its index hold at that moment: once
the power is off, no clean-up of the dying runtime reaches either.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import trio

from vaala.dao.index_db import NAMESPACES, IndexDb
from vaala.dao.opening import serve_store
from vaala.dao.store import Store
from vaala.dao.trash import StoredTrash
from vaala_protocol.errors import Refused
from vaala_storage.errors import StorageError
from vaala_storage.faults import Fault, FaultyFiles, MemoryFiles, PowerCut
from vaala_storage.file import open_file_blobs, open_file_log
from vaala_storage.log import LogStorage
from vaala_storage.records import RecordStorage
from vaala_storage.search import SearchIndex
from vaala_storage.staged import StagedStorage

ROOT = "/data"


class PoweredFiles(FaultyFiles):
    """`FaultyFiles` that tell when the power is off, and that survive a dead process."""

    died: trio.Event
    """Set at the first call that finds the power off."""
    sync_failed = False

    @property
    def off(self) -> bool:
        return self._power == 0

    def _fault(self, name: str) -> Fault | None:
        fault = super()._fault(name)
        if fault is Fault.POWER_CUT:
            self.died.set()
        return fault

    def sync_data(self, handle: int) -> None:
        try:
            super().sync_data(handle)
        except OSError:
            self.sync_failed = True
            raise

    def new_process(self) -> None:
        """Turn the power on for another process: what was written stays, synced or not."""
        self.died = trio.Event()
        self.sync_failed = False
        self._power = None
        self._planned.clear()
        self._paths.clear()


class _Index(IndexDb):
    """The index as one process sees it: out of reach as soon as the power is off."""

    def __init__(self, disk: SimulatedDisk) -> None:
        super().__init__()
        self._disk = disk
        self.use(disk.index.records, disk.index.search)

    @property
    def records(self) -> RecordStorage:
        self._check()
        return super().records

    @property
    def search(self) -> SearchIndex:
        self._check()
        return super().search

    def _check(self) -> None:
        if self._disk.files.off:
            self.lose("the machine is off")


class SimulatedDisk:
    """Changing calls fail at ``files.rate`` (0 to 1) as ``random`` draws it; reading never does."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._memory = MemoryFiles()
        self.files = PoweredFiles(
            self._memory, random=random, drawn=frozenset(Fault) - {Fault.SILENT}
        )
        self.files.new_process()
        self.index = StagedStorage(namespaces=NAMESPACES)

    def fill(self, free_bytes: int = 0) -> None:
        """Leave this much space; whatever needs more fails with ENOSPC until `make_room`."""
        self._memory.space = free_bytes

    def make_room(self) -> None:
        self._memory.space = None

    def cut_power(self, after: int = 0) -> None:
        """Stop the machine at the next changing call but ``after``; every later call raises."""
        self.files.cut_power(after)

    def stop_now(self) -> None:
        """Stop the machine at this moment: a block under `until_it_dies` is cancelled."""
        self.files.cut_power(0)
        self.files.died.set()

    @asynccontextmanager
    async def until_it_dies(self) -> AsyncGenerator[None]:
        """Run a block that is cancelled as soon as the power is found off; it ends quietly then.

        What the block raises once the power is off is what dying looks like from inside.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cancel_at_death, nursery.cancel_scope)
                yield
                nursery.cancel_scope.cancel()
        except* (PowerCut, Refused, StorageError):
            if not self.files.off:
                raise

    async def _cancel_at_death(self, scope: trio.CancelScope) -> None:
        await self.files.died.wait()
        scope.cancel()

    def restart(self, *, power_was_lost: bool) -> None:
        """Start again without faults: after a power loss only what was synced is sure to be there.

        Otherwise just the process died (kill -9), and all that it had written is there. What a
        failed sync has dropped is lost in either case: the next process could read it, but no sync
        of its own would write it any more, and it has no way to know.
        """
        if power_was_lost or self.files.sync_failed:
            self.files.restart(self._random)
        self.files.new_process()
        self.files.rate = 0.0
        self.make_room()

    @asynccontextmanager
    async def store(self) -> AsyncGenerator[Store]:
        """Open the store as its owner."""
        async with self.log() as log, open_file_blobs(ROOT, files=self.files) as blobs:
            trash = StoredTrash(log, blobs)
            async with serve_store(log, blobs, _Index(self), trash, place="disk") as store:
                yield store

    @asynccontextmanager
    async def log(self) -> AsyncGenerator[LogStorage]:
        """Open the log alone, to look at what is there."""
        async with open_file_log(ROOT, files=self.files) as log:
            yield log

    def with_new_index(self) -> SimulatedDisk:
        """Return a machine with these files whose index has to be made from them."""
        other = SimulatedDisk(self._random)
        other._memory, other.files = self._memory, self.files
        return other
