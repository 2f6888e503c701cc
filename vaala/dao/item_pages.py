"""Pages of a session's transcript, by place, from either end; turns and steps, newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from vaala.dao.blocks import Blocks, ends_block, locate
from vaala.dao.entries import Entry, merged
from vaala.dao.limits import PAGE_ITEMS_MAX
from vaala.dao.pages import StepPage, TurnPage
from vaala.dao.walk import Stream, Walk
from vaala_protocol.base import Malformed, from_json
from vaala_protocol.items import Item
from vaala_protocol.pages import Gap, ItemPage
from vaala_protocol.state import StepInfo, TurnInfo

T = TypeVar("T")


async def page_before(stream: Stream, session_id: str, before: int | None, limit: int) -> ItemPage:
    """Return the last items with a lower place than ``before`` (None: the newest)."""
    walk = await _walk_back(stream, before)
    blocks = Blocks(walk, session_id)
    found: list[Item] = []
    later = False
    while len(found) <= limit and (items := await blocks.next()) is not None:
        inside = [item for item in items if before is None or item.at < before]
        later = later or len(inside) < len(items)
        found = inside + found
    return ItemPage(
        items=tuple(found[-limit:]),
        earlier=len(found) > limit,
        later=later,
        damage=_gaps(walk),
    )


async def page_after(
    stream: Stream, session_id: str, after: int, before: int | None, limit: int
) -> ItemPage:
    """Return the first items with a higher place than ``after`` (and a lower than ``before``)."""
    walk = await _walk_from(stream, after + 1)
    blocks = Blocks(walk, session_id)
    found: list[Item] = []
    earlier = False
    while len(found) <= limit and (items := await blocks.next()) is not None:
        inside = [item for item in items if item.at > after]
        earlier = earlier or len(inside) < len(items)
        found += inside
        if before is not None and found and found[-1].at >= before:
            break
    shown = [item for item in found if before is None or item.at < before][:limit]
    return ItemPage(
        items=tuple(shown),
        earlier=earlier,
        later=len(shown) < len(found),
        damage=_gaps(walk),
    )


def _gaps(walk: Walk) -> tuple[Gap, ...]:
    return tuple(Gap(first=one.first, last=one.last, detail=one.detail) for one in walk.damage)


async def items_from(stream: Stream, session_id: str, at: int) -> AsyncIterator[list[Item]]:
    """Yield all items with this or a higher place, step by step, in order of ``at``."""
    blocks = Blocks(await _walk_from(stream, at), session_id)
    while (items := await blocks.next()) is not None:
        inside = [item for item in items if item.at >= at]
        if inside:
            yield inside


async def turns_before(stream: Stream, cursor: int | None, limit: int) -> TurnPage:
    """Return turns, newest first; the cost is that of reading the stream they span."""
    wanted = _Newest(stream, "turn", ("id",), limit)
    found, position = await wanted.collect(cursor)
    return TurnPage(_decoded(found, TurnInfo), position)


async def steps_before(
    stream: Stream, cursor: int | None, limit: int, turn_id: str | None
) -> StepPage:
    """Return steps, newest first, of one turn or of all."""
    wanted = _Newest(stream, "step", ("turnId", "number"), limit, turn_id)
    found, position = await wanted.collect(cursor)
    return StepPage(_decoded(found, StepInfo), position)


class _Newest:
    """Gathers things of one kind from the end of a stream: changes first, then what they change.

    A whole entry, which comes first in the stream, is told by its ``startedAt``. The cursor is the
    sequence of the last whole entry of a page; with one, changes that come after it are not met,
    so a page never begins between a thing and its changes.
    """

    def __init__(
        self,
        stream: Stream,
        tag: str,
        keys: tuple[str, ...],
        limit: int,
        turn_id: str | None = None,
    ) -> None:
        self._stream = stream
        self._tag = tag
        self._keys = keys
        self._limit = max(1, min(limit, PAGE_ITEMS_MAX))
        self._turn_id = turn_id
        self._patches: dict[tuple[Any, ...], list[Entry]] = {}

    async def collect(self, cursor: int | None) -> tuple[list[Entry], int | None]:
        walk = Walk(self._stream, cursor, back=True)
        found: list[Entry] = []
        while (stored := await walk.next()) is not None:
            entry = stored.entry
            if self._past(entry):
                return found, None
            whole = self._take(entry)
            if whole is None:
                continue
            found.append(whole)
            if len(found) == self._limit:
                return found, stored.seq if stored.seq > 1 else None
        return found, None

    def _take(self, entry: Any) -> Entry | None:
        if entry.get("t") != self._tag:
            return None
        if self._turn_id is not None and entry.get("turnId") != self._turn_id:
            return None
        key = tuple(str(entry.get(name)) for name in self._keys)
        if "startedAt" not in entry:
            self._patches.setdefault(key, []).append(dict(entry))
            return None
        whole = dict(entry)
        for patch in reversed(self._patches.pop(key, [])):
            whole = merged(whole, patch)
        return whole

    def _past(self, entry: Any) -> bool:
        """Tell whether this is the beginning of the one turn whose steps are wanted."""
        return (
            self._turn_id is not None
            and entry.get("t") == "turn"
            and entry.get("id") == self._turn_id
            and "startedAt" in entry
        )


def _decoded(found: list[Entry], kind: type[T]) -> tuple[T, ...]:
    decoded: list[T] = []
    for entry in found:
        try:
            decoded.append(from_json(entry, kind))
        except Malformed:
            continue
    return tuple(decoded)


async def _walk_back(stream: Stream, before: int | None) -> Walk:
    """Return a walk back that begins at the end of the last block with a place before this."""
    if before is None:
        return Walk(stream, None, back=True)
    _, high = await locate(stream, before)
    if high is None:
        return Walk(stream, None, back=True)
    ahead = Walk(stream, high - 1)
    while (stored := await ahead.next()) is not None:
        if ends_block(stored.entry):
            return Walk(stream, stored.seq + 1, back=True)
    return Walk(stream, None, back=True)


async def _walk_from(stream: Stream, at: int) -> Walk:
    """Return a walk on that begins where the block of the first item from this place begins."""
    low, _ = await locate(stream, at)
    behind = Walk(stream, low, back=True) if low else None
    while behind is not None and (stored := await behind.next()) is not None:
        if ends_block(stored.entry):
            return Walk(stream, stored.seq)
    return Walk(stream, 0)
