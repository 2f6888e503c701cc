"""What the stores of one database share: its reading and its writing side."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from vaala_storage.errors import ReadOnly
from vaala_storage.sqlite.threads import Threads, Work

T = TypeVar("T")


class Access(Struct, frozen=True):
    path: Path
    readers: Threads
    writer: Threads | None

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` on what is committed; it stops soon after a cancel."""
        return await self.readers.run(work)

    async def write(self, work: Work[T]) -> T:
        """Run ``work`` and commit; once begun it is finished even when cancelled."""
        if self.writer is None:
            raise ReadOnly(f"{self.path}: opened for reading")
        return await self.writer.run(work)
