"""Moving a conversation from memory to a durable store in one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

import trio

from vaala_protocol import decode
from vaala_storage.blobs import BlobStorage
from vaala_storage.entry_rules import encode_entries
from vaala_storage.errors import AlreadyExists
from vaala_storage.log import Entry, LogStorage
from vaala_storage.staged.storage import StagedStorage

_NOTHING: Mapping[str, Sequence[Entry]] = MappingProxyType({})


async def hand_over(
    staged: StagedStorage,
    path: str,
    log: LogStorage,
    blobs: BlobStorage,
    *,
    adding: Mapping[str, Sequence[Entry]] = _NOTHING,
) -> None:
    """Move a staged path with its blobs to ``log`` and ``blobs``; durable on return.

    Its streams and the entries of ``adding`` behind them become one `create`, so the path exists
    with the message that it was kept back for, or not at all. When anything fails all of it stays
    staged and nothing of ``adding`` is kept; the call can be made again, also after an outcome
    that is not known: a path that is there with exactly these entries counts as made. Appends to
    the path wait meanwhile and then raise `NotFound`, since it is in ``log``.

    Raises `NotFound` when the path is not staged, `AlreadyExists` when another one is in its
    place, and what ``create`` and ``put`` raise. A cancel has no effect once it has begun: half
    moved, nobody would know where the path is.
    """
    async with staged.log.lock(path):
        kept = staged.log.staged(path)
        streams: dict[str, list[Entry]] = {
            name: [*map(decode, kept.get(name, ())), *adding.get(name, ())]
            for name in kept.keys() | adding.keys()
        }
        with trio.CancelScope(shield=True):
            await _copy_blobs(staged, path, blobs)
            try:
                await log.create(path, streams)
            except AlreadyExists:
                if not await _holds(log, path, streams):
                    raise
        staged.log.drop(path)
        staged.blobs.drop(path)


async def _copy_blobs(staged: StagedStorage, path: str, blobs: BlobStorage) -> None:
    async for key in staged.blobs.keys(path):
        # An earlier attempt may have come this far; the bytes of a key never change.
        with suppress(AlreadyExists):
            await blobs.put(path, key, await staged.blobs.get(path, key))


async def _holds(log: LogStorage, path: str, streams: Mapping[str, Sequence[Entry]]) -> bool:
    """Whether a path has these streams with these entries and nothing else."""
    if set(await log.streams(path)) != set(streams):
        return False
    for name, entries in streams.items():
        found: list[Entry] = []
        more = True
        while more and len(found) <= len(entries):
            page = await log.read(path, name, after=len(found))
            found += [stored.entry for stored in page.entries]
            more = page.more
        if encode_entries(found) != encode_entries(entries):
            return False
    return True
