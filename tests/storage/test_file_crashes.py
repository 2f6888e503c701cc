"""Random histories of faults and crashes: what was acknowledged survives, nothing is half there."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from vaala_storage import (
    AlreadyExists,
    Conflict,
    Entry,
    NotFound,
    StorageError,
    StreamBroken,
)
from vaala_storage.faults import Fault, FaultyFiles, MemoryFiles, PowerCut
from vaala_storage.file import FileLog, open_file_log

STREAMS = ("s", "t")
FAULTS = frozenset(Fault) - {Fault.SILENT}


@dataclass
class Known:
    """What the writer of one stream knows: entries that are there, and some that may be."""

    entries: list[Entry] = field(default_factory=list)
    unsure: list[Entry] = field(default_factory=list)

    def allows(self, found: list[Entry]) -> bool:
        return found in (self.entries, self.entries + self.unsure)

    def settle(self, found: list[Entry]) -> None:
        assert self.allows(found), (found, self)
        self.entries, self.unsure = found, []


class History:
    """One machine with one disk, driven by a seed through faults, power cuts and restarts."""

    def __init__(self, seed: int, rate: float) -> None:
        self.random = Random(seed)
        self.disk = MemoryFiles()
        self.files = FaultyFiles(self.disk, random=self.random, drawn=FAULTS)
        self.rate = rate
        self.known: dict[str, Known] | None = None
        self.number = 0

    def batch(self) -> list[Entry]:
        batch: list[Entry] = []
        for _ in range(self.random.choice((1, 1, 2, 5))):
            self.number += 1
            batch.append({"n": self.number, "x": "x" * self.random.choice((0, 10, 600, 3000))})
        return batch

    async def life(self, steps: int) -> None:
        """Open the log, check it, and work until the power is cut."""
        self.files.rate = 0
        async with open_file_log("/data", files=self.files) as log:
            await self.check(log)
            self.files.rate = self.rate
            self.files.cut_power(self.random.randrange(1, 60))
            for _ in range(steps):
                await self.step(log)

    async def check(self, log: FileLog) -> None:
        paths = (await log.paths()).paths
        assert paths in ((), ("p",)), paths
        assert ".log" not in [entry.name for entry in self.disk.list_directory("/data")]
        if self.known is None:
            assert paths == ()
            return
        if paths == ():  # only when its making was not acknowledged
            assert all(not known.entries for known in self.known.values())
            self.known = None
            return
        for stream, known in self.known.items():
            known.settle(await self.read(log, stream))

    async def read(self, log: FileLog, stream: str) -> list[Entry]:
        try:
            page = await log.read("p", stream, limit=10_000)
        except NotFound:
            return []
        bad = [damage for damage in page.damage if damage.last is not None or not damage.first]
        assert not bad, bad
        assert [stored.seq for stored in page.entries] == list(range(1, len(page.entries) + 1))
        return [stored.entry for stored in page.entries]

    async def step(self, log: FileLog) -> None:
        if self.known is None:
            await self.create(log)
            return
        stream = self.random.choice(STREAMS)
        known = self.known[stream]
        if self.random.random() < 0.1:
            await log.release("p")
        batch = self.batch()
        known.unsure = batch
        try:
            last = await log.append("p", stream, batch, expected=len(known.entries))
        except StreamBroken:
            await self.recover(log, stream)
        except Conflict as conflict:
            pytest.fail(f"nobody else writes: {conflict}")
        except StorageError:
            known.unsure = []  # each of these says that nothing was written
        else:
            assert last == len(known.entries) + len(batch)
            known.settle(known.entries + batch)

    async def create(self, log: FileLog) -> None:
        batch = self.batch()
        self.known = {"s": Known(unsure=batch), "t": Known()}
        for _ in range(10):
            try:
                await log.create("p", {"s": batch})
            except AlreadyExists:  # an earlier attempt went further than it could tell
                break
            except StorageError:
                continue
            break
        else:
            self.files.rate = 0
            with contextlib.suppress(AlreadyExists):
                await log.create("p", {"s": batch})
            self.files.rate = self.rate
        self.known["s"].settle(batch)

    async def recover(self, log: FileLog, stream: str) -> None:
        assert self.known is not None
        for attempt in range(10):
            self.files.rate = self.rate if attempt < 9 else 0
            with contextlib.suppress(StorageError):
                last, _ = await log.recover("p", stream)
                break
        self.files.rate = self.rate
        found = await self.read(log, stream)
        assert last == len(found)
        self.known[stream].settle(found)

    def run(self, lives: int) -> None:
        for _ in range(lives):
            with contextlib.suppress(PowerCut):
                trio.run(self.life, 40)
            self.files.restart(self.random)
        self.files.rate = 0
        trio.run(self.final_look)

    async def final_look(self) -> None:
        async with open_file_log("/data", files=self.files) as log:
            await self.check(log)
            if self.known is None:
                return
            for stream, known in self.known.items():
                expected = len(known.entries)
                assert await log.append("p", stream, [{"n": "end"}], expected=expected) > expected


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32), rate=st.sampled_from((0.0, 0.02, 0.2)))
def test_what_was_acknowledged_survives(seed: int, rate: float) -> None:
    History(seed, rate).run(lives=4)
