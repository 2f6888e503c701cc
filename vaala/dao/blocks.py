"""Blocks: the parts of a session's stream between the ends of steps.

An item changes only within its step, and the order of the log differs from the order of ``at``
only within a step. So a block holds every entry of its items, all items of an earlier block have
a lower ``at``, and a place is found by bisection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from vaala.dao.entries import Entry, merged
from vaala.dao.limits import PROBE_ENTRIES, READ_CHUNK_ENTRIES
from vaala.dao.walk import Stream, Walk
from vaala_protocol.base import Malformed
from vaala_protocol.items import Item, decode_item
from vaala_storage.log import Damage, Stored


def ends_block(entry: Mapping[str, Any]) -> bool:
    """Tell whether this entry ends a step: by itself, or with its turn."""
    match entry.get("t"):
        case "step":
            return entry.get("endedAt") is not None
        case "turn":
            return bool(entry.get("state", "running") != "running")
        case _:
            return False


def fold_block(stored: list[Stored], session_id: str, damage: list[Damage]) -> list[Item]:
    """Return the items of a block, whole, by ``at``; what cannot be read goes to ``damage``."""
    whole: dict[str, Entry] = {}
    for one in stored:
        fields = {name: value for name, value in one.entry.items() if name != "t"}
        key = fields.get("id")
        if not isinstance(key, str) or (key not in whole and "kind" not in fields):
            damage.append(Damage(one.seq, one.seq, "a change of an item that is not there"))
            continue
        whole[key] = merged(whole[key], fields) if key in whole else fields
    items: list[Item] = []
    for key, fields in whole.items():
        try:
            items.append(decode_item(fields, session_id))
        except Malformed as error:
            damage.append(Damage(None, None, f"item {key}: {error}"))
    return sorted(items, key=lambda item: item.at)


class Blocks(Struct):
    """The blocks of a stream, one way, as lists of whole items; empty ones are passed over."""

    walk: Walk
    session_id: str

    async def next(self) -> list[Item] | None:
        """Return the items of the next block, or None at the end of the stream."""
        while True:
            stored, ended = await self._entries()
            if stored:
                return fold_block(stored, self.session_id, self.walk.damage)
            if ended:
                return None

    async def _entries(self) -> tuple[list[Stored], bool]:
        found: list[Stored] = []
        started = False
        while (stored := await self.walk.next()) is not None:
            border = ends_block(stored.entry)
            if border and self.walk.back and started:
                self.walk.unread(stored)
                break
            started = True
            if stored.entry.get("t") == "item":
                found.append(stored)
            if border and not self.walk.back:
                break
        else:
            return _in_order(found, self.walk.back), True
        return _in_order(found, self.walk.back), False


def _in_order(found: list[Stored], back: bool) -> list[Stored]:
    return found[::-1] if back else found


async def locate(stream: Stream, at: int) -> tuple[int, int | None]:
    """Return sequences (low, high) of whole items around the place ``at``.

    The item at ``low`` has a lower place (0: no such item was met), that at ``high`` has this or a
    higher one (None: none). They are as near to each other as a few probes of the log can tell.
    """
    low, high = 0, None
    end = await stream.log.last(stream.path, stream.name) + 1
    while end - low > READ_CHUNK_ENTRIES // 2:  # less than what is read then anyway
        middle = (low + end) // 2
        met = await _first_item(stream, middle, end)
        if met is None:
            end = middle
        elif met.entry["at"] < at:
            low = met.seq
        else:
            end = middle
            high = met.seq
    return low, high


async def _first_item(stream: Stream, start: int, end: int) -> Stored | None:
    """Return the first whole item with ``start <= seq < end``."""
    after = start - 1
    while True:
        page = await stream.log.read(
            stream.path, stream.name, after=after, before=end, limit=PROBE_ENTRIES
        )
        for stored in page.entries:
            entry = stored.entry
            if entry.get("t") == "item" and "kind" in entry and isinstance(entry.get("at"), int):
                return stored
        if not page.more or not page.entries:
            return None
        after = page.entries[-1].seq
