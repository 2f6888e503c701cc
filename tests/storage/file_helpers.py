"""What several tests of the file stores use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from vaala_storage import Entry, LogStorage, StorageError
from vaala_storage.faults import Fault, FaultyFiles

Outcomes = dict[int, "int | StorageError"]


async def one_append(
    log: LogStorage, batch: Sequence[Entry], expected: int, outcomes: Outcomes
) -> None:
    """Append to p/s and note under ``expected`` what came of it."""
    try:
        outcomes[expected] = await log.append("p", "s", batch, expected=expected)
    except StorageError as error:
        outcomes[expected] = error


@asynccontextmanager
async def queued_behind_a_sync(
    log: LogStorage, files: FaultyFiles, batches: Sequence[Sequence[Entry]], *, expected: int
) -> AsyncGenerator[Outcomes]:
    """Let the first append be in its sync, which does not return, and the others wait behind it.

    Leaving lets the sync return, and waits for all.
    """
    outcomes: Outcomes = {}
    await log.append("p", "s", [], expected=expected)  # finds the end, which takes syncs
    files.plan("sync_data", Fault.SILENT)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one_append, log, batches[0], expected, outcomes)
        await silence(files)
        for batch in batches[1:]:
            expected += len(batch)
            nursery.start_soon(one_append, log, batch, expected, outcomes)
            await wait_all_tasks_blocked()
        try:
            yield outcomes
        finally:
            files.release()


async def silence(files: FaultyFiles) -> None:
    """Wait until a call is silent."""
    await trio.to_thread.run_sync(files.silent.acquire)
