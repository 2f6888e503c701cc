"""Bringing a row up to date from the log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from vaala.dao.entries import METADATA_STREAM
from vaala.dao.limits import INDEX_BATCH_DOCUMENTS
from vaala.dao.row import Row, RowFold
from vaala.dao.walk import Stream, Walk
from vaala_storage.log import LogStorage

Spill = Callable[[RowFold], Awaitable[None]]


async def fold_log(log: LogStorage, fold: RowFold, streams: Sequence[str], *, spill: Spill) -> bool:
    """Fold what the streams hold beyond the row; return whether gaps were met.

    ``spill`` stores and clears the documents whenever they are many. Raises
    `vaala_storage.errors.NotFound` when the path is gone.
    """
    damaged = False
    for stream in streams:
        walk = Walk(Stream(log, fold.conversation_id, stream), fold.row.sequence(stream))
        while (stored := await walk.next()) is not None:
            fold.apply(stream, stored.seq, stored.entry)
            if len(fold.documents) >= INDEX_BATCH_DOCUMENTS:
                await spill(fold)
        damaged = damaged or bool(walk.damage)
    return damaged


async def is_ahead(log: LogStorage, conversation_id: str, row: Row) -> bool:
    """Tell whether the row knows more of a stream than is there: it must be made anew."""
    present = set(await log.streams(conversation_id))
    for stream in (METADATA_STREAM, *row.streams):
        seq = row.sequence(stream)
        if seq and (stream not in present or await log.last(conversation_id, stream) < seq):
            return True
    return False
