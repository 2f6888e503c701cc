"""Pages and snapshots of a bounded size.

An item holds up to some 500 KB, and making an answer is one step in which nobody else is served.
What is left out is got by `session/items`, as whatever is older.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

from msgspec.structs import replace

from vaala.dao.limits import LIST_PAGE_MAX
from vaala.dao.pages import checked_limit
from vaala.event_size import item_characters
from vaala.server import limits
from vaala_protocol.items import Approval, Item, Question, ToolCall
from vaala_protocol.pages import ItemPage
from vaala_protocol.state import Snapshot

_LIVE = frozenset(("waiting", "running", "pending"))


def page_limit(limit: int, most: int) -> int:
    """Return how many rows or items to give to one who asks for ``limit``: ``most`` at most.

    Raises `BadRequest` for what would be refused in process, too.
    """
    return min(checked_limit(limit, LIST_PAGE_MAX), most)


def fitting_page(page: ItemPage, *, forward: bool) -> ItemPage:
    """Return the items nearest to where the page was asked for, at least one of them.

    ``forward``: it was asked for behind a place, so its first items are the nearest.
    """
    items = page.items if forward else page.items[::-1]
    size = 0
    for number, item in enumerate(items):
        size += item_characters(item)
        if number and size > limits.PAGE_CHARACTERS_MAX:
            if forward:
                return replace(page, items=items[:number], later=True)
            return replace(page, items=items[:number][::-1], earlier=True)
    return page


def fitting_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with the newest items of all sessions, by when they were made.

    Of each session it has the last items without a gap; before them stands only what waits or
    runs, which is always there.
    """
    sizes = [[item_characters(item) for item in one.items] for one in snapshot.sessions]
    if sum(map(sum, sizes)) <= limits.SNAPSHOT_CHARACTERS_MAX:
        return snapshot
    first_kept = [len(one.items) for one in snapshot.sessions]
    newest = [
        (-one.items[-1].created_at, number)
        for number, one in enumerate(snapshot.sessions)
        if one.items
    ]
    heapify(newest)
    left = limits.SNAPSHOT_CHARACTERS_MAX
    while newest:
        number = newest[0][1]
        place = first_kept[number] - 1
        left -= sizes[number][place]
        if left < 0:
            break
        first_kept[number] = place
        if place:
            before = snapshot.sessions[number].items[place - 1]
            heapreplace(newest, (-before.created_at, number))
        else:
            heappop(newest)
    sessions = (
        replace(one, items=(*filter(_waits, one.items[:first]), *one.items[first:]))
        for one, first in zip(snapshot.sessions, first_kept, strict=True)
    )
    return replace(snapshot, sessions=tuple(sessions))


def _waits(item: Item) -> bool:
    return isinstance(item, ToolCall | Approval | Question) and item.state in _LIVE
