"""Live parts: items that are still being made. Shown to clients, in memory only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from vaala_protocol.events import Event, ItemChanged, ItemDelta, ItemDropped
from vaala_protocol.items import Item
from vaala_protocol.state import LivePart

Part: TypeAlias = Literal["text", "arguments", "output"]


class _Part:
    __slots__ = ("chunks", "field", "item", "length")

    def __init__(self, item: Item, field: Part) -> None:
        self.item = item
        self.field: Part = field
        self.chunks: list[str] = []
        self.length = 0


class LiveParts:
    """Deltas are published as they come; their sum is kept for snapshots."""

    def __init__(self, session_id: str, publish: Callable[[Event], None]) -> None:
        self._session_id = session_id
        self._publish = publish
        self._parts: dict[str, _Part] = {}

    def show(self, item: Item, field: Part) -> None:
        """Make an item visible whose ``field`` is going to grow."""
        self._parts[item.id] = _Part(item, field)
        self._publish(ItemChanged(item=item, live=True))

    def add(self, item_id: str, text: str) -> None:
        """Add text to an item that was shown; ignored for one that is no longer live."""
        part = self._parts.get(item_id)
        if part is None or not text:
            return
        event = ItemDelta(
            session_id=self._session_id,
            item_id=item_id,
            field=part.field,
            index=part.length,
            text=text,
        )
        part.chunks.append(text)
        part.length += len(text)
        self._publish(event)

    def text(self, item_id: str) -> str:
        """Return what has come for an item so far."""
        part = self._parts.get(item_id)
        return "".join(part.chunks) if part else ""

    def end(self, item_id: str) -> None:
        """The item is logged whole, or about to be: it is not live any more."""
        self._parts.pop(item_id, None)

    def drop(self, item_id: str) -> None:
        """Take back an item that never becomes part of the history."""
        if self._parts.pop(item_id, None) is not None:
            self._publish(ItemDropped(session_id=self._session_id, item_id=item_id))

    def snapshot(self) -> tuple[LivePart, ...]:
        return tuple(
            LivePart(
                item=part.item,
                field=part.field,
                text="".join(part.chunks),
                next_index=part.length,
            )
            for part in self._parts.values()
        )
