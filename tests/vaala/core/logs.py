"""Session logs over a store in memory that fails as it is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

import trio

from vaala.dao.entries import ROOT_STREAM
from vaala.dao.home import Home, Shared
from vaala.dao.row import Row
from vaala.dao.session_log import SessionLog, session_start
from vaala_protocol.settings import Settings
from vaala_protocol.state import SessionInfo
from vaala_storage.errors import StorageFailed, StorageFull, StreamBroken
from vaala_storage.log import Damage, Entry
from vaala_storage.staged import StagedStorage
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.log import StagedLog

Fault: TypeAlias = Literal["", "full", "broken, lost", "broken, landed", "failed, landed"]
FAULTS: tuple[Fault, ...] = ("full", "broken, lost", "broken, landed", "failed, landed")

SESSION = "01234567-89ab-7def-8123-456789abcdef"


class FlakyLog(StagedLog):
    """Appends fail as ``faults`` say, one each. A broken stream takes nothing until `recover`.

    ``recoveries`` tells which recoveries fail.
    """

    def __init__(self) -> None:
        super().__init__(Budget(1 << 30))
        self.faults: deque[Fault] = deque()
        self.recoveries: deque[bool] = deque()
        self.broken = False
        self.slow_s = 0.0

    async def append(
        self, path: str, stream: str, entries: Sequence[Entry], *, expected: int
    ) -> int:
        await trio.sleep(self.slow_s)
        if self.broken:
            raise StreamBroken("recover it first")
        fault = self.faults.popleft() if self.faults else ""
        if fault == "full":
            raise StorageFull("no space left")
        if fault == "broken, lost":
            self.broken = True
            raise StreamBroken("the device failed")
        last = await super().append(path, stream, entries, expected=expected)
        if fault == "broken, landed":
            self.broken = True
            raise StreamBroken("the device failed")
        if fault == "failed, landed":
            raise StorageFailed("something else")
        return last

    async def recover(self, path: str, stream: str) -> tuple[int, tuple[Damage, ...]]:
        if self.recoveries and not self.recoveries.popleft():
            raise StreamBroken("it cannot be read either")
        self.broken = False
        return await super().recover(path, stream)

    def heal(self) -> None:
        self.faults.clear()
        self.recoveries.clear()


class _NoIndex:
    async def mark_open(self, conversation_id: str) -> None:
        await trio.lowlevel.checkpoint()

    def note(self, conversation_id: str, stream: str, first: int, entries: Sequence[Entry]) -> None:
        """Nothing is listed here."""

    def stale(self, conversation_id: str) -> None:
        """Nothing is listed here."""

    def unsettled(self, conversation_id: str) -> None:
        """Nothing is listed here."""

    def closed(self, conversation_id: str) -> None:
        """Nothing is listed here."""

    async def row(self, conversation_id: str) -> Row | None:
        await trio.lowlevel.checkpoint()
        return None


def home_of(log: StagedLog) -> Home:
    staged = StagedStorage()
    shared = Shared(log, staged.blobs, staged, _NoIndex(), "place", lambda: 1, "instance")
    return Home(shared, SESSION, origin="origin", staged=False)


async def new_log(storage: StagedLog) -> SessionLog:
    """Return the log of a new root session, loaded."""
    info = SessionInfo(id=SESSION, agent="default", created_at=1, settings=Settings())
    await storage.create(SESSION, {ROOT_STREAM: session_start(info, "origin")})
    return await reopened(storage)


async def reopened(storage: StagedLog) -> SessionLog:
    """Return the log as the next runtime reads it."""
    log = SessionLog(home_of(storage), SESSION)
    await log.load()
    return log


async def entries_of(storage: StagedLog) -> list[Entry]:
    page = await storage.read(SESSION, ROOT_STREAM, limit=1_000)
    assert not page.more
    return [stored.entry for stored in page.entries]
