"""What may leave the server: items without the opaque data of model providers.

`Private` data (signatures, encrypted reasoning, ids of calls) is for the provider alone. Each
function returns the very object that it was given when there is nothing to take out, so it costs
a look at each item and no copy.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from vaala_protocol.events import Event, Frame, ItemChanged, SessionOpened
from vaala_protocol.items import AssistantMessage, Item, Reasoning, ToolCall, UnknownItem
from vaala_protocol.pages import ItemPage
from vaala_protocol.state import LivePart, SessionSnapshot, Snapshot

_KEY = "private"


def public_item(item: Item) -> Item:
    """Return an item as clients may see it.

    What a newer version wrote is known by the name of its fields alone: nothing called
    ``private`` is left in it, however deep.
    """
    if isinstance(item, AssistantMessage | Reasoning | ToolCall):
        return item if item.private is None else replace(item, private=None)
    if isinstance(item, UnknownItem) and _has_private(item.fields):
        return replace(item, fields=_without_private(item.fields))
    return item


def public_event(event: Event) -> Event:
    """Return an event of a conversation as clients may see it."""
    if isinstance(event, ItemChanged):
        item = public_item(event.item)
        return event if item is event.item else replace(event, item=item)
    if isinstance(event, SessionOpened):
        session = public_session(event.session)
        return event if session is event.session else replace(event, session=session)
    return event


def public_frame(frame: Frame) -> Frame:
    """Return a numbered event as clients may see it."""
    event = public_event(frame.event)
    return frame if event is frame.event else replace(frame, event=event)


def public_session(session: SessionSnapshot) -> SessionSnapshot:
    """Return a session's part of a snapshot as clients may see it."""
    items = _public_items(session.items)
    live = tuple(_public_part(part) for part in session.live)
    if items is session.items and all(map(_same, live, session.live)):
        return session
    return replace(session, items=items, live=live)


def public_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return a conversation's snapshot as clients may see it."""
    sessions = tuple(public_session(session) for session in snapshot.sessions)
    if all(map(_same, sessions, snapshot.sessions)):
        return snapshot
    return replace(snapshot, sessions=sessions)


def public_page(page: ItemPage) -> ItemPage:
    """Return a page of a transcript as clients may see it."""
    items = _public_items(page.items)
    return page if items is page.items else replace(page, items=items)


def _public_items(items: tuple[Item, ...]) -> tuple[Item, ...]:
    clean = tuple(public_item(item) for item in items)
    return items if all(map(_same, clean, items)) else clean


def _public_part(part: LivePart) -> LivePart:
    item = public_item(part.item)
    return part if item is part.item else replace(part, item=item)


def _same(one: object, other: object) -> bool:
    return one is other


def _has_private(value: Any) -> bool:
    if isinstance(value, dict):
        return _KEY in value or any(map(_has_private, value.values()))
    return isinstance(value, list) and any(map(_has_private, value))


def _without_private(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_private(inner) for key, inner in value.items() if key != _KEY}
    if isinstance(value, list):
        return [_without_private(inner) for inner in value]
    return value
