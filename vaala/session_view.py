"""What clients see of a session: its newest items, kept while somebody looks, and its turns.

Opaque data of providers is for the model that made it: no client gets it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from vaala import limits
from vaala.agent.history import last_words_of
from vaala.dao.session_log import SessionLog
from vaala_protocol.errors import NotFound
from vaala_protocol.items import Item
from vaala_protocol.pages import ItemPage
from vaala_protocol.public import public_item, public_page
from vaala_protocol.state import SessionSnapshot, TurnInfo, TurnResult

if TYPE_CHECKING:
    from vaala.session import Session


def snapshot_of(session: Session) -> SessionSnapshot:
    """Return what clients see now; `RecentItems.load` comes first."""
    state = session.state
    return SessionSnapshot(
        info=session.info,
        settings=state.head.settings,
        items=session.recent.newest(state.unsettled),
        turn=state.head.turn,
        live=session.live.snapshot(),
        queue=tuple(state.pending),
        commands=session.command_infos,
        waits=session.waits.snapshot(),
        unsaved=session.unsaved,
    )


class RecentItems:
    """The newest items, for snapshots; empty until `load`, and again after `forget`."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._items: dict[str, Item] | None = None
        self._loaded = False
        self._loading: trio.Lock | None = None

    def note(self, item: Item) -> None:
        """Take an item that was made or changed."""
        if self._items is None:
            return
        self._items[item.id] = item
        if len(self._items) > 2 * limits.SNAPSHOT_ITEMS_MAX:
            self._items = {kept.id: kept for kept in self.newest()}

    def newest(self, unsettled: Iterable[Item] = ()) -> tuple[Item, ...]:
        """Return the newest items, and what waits for a decision or runs, however old."""
        items = sorted((self._items or {}).values(), key=lambda item: item.at)
        shown = {item.id: item for item in items[-limits.SNAPSHOT_ITEMS_MAX :]}
        shown.update({item.id: public_item(item) for item in unsettled})
        return tuple(sorted(shown.values(), key=lambda item: item.at))

    async def load(self) -> None:
        """Make sure that `newest` is complete. Items that come meanwhile are not lost."""
        if self._loaded:
            return
        self._loading = self._loading or trio.Lock()
        async with self._loading:
            if self._loaded:
                return
            if self._items is None:
                self._items = {}
            page = await self._log.items(limit=limits.SNAPSHOT_ITEMS_MAX)
            for item in page.items:
                self._items.setdefault(item.id, public_item(item))
            self._loaded = True

    def forget(self) -> None:
        self._items = None
        self._loaded = False


async def read_items(
    log: SessionLog, *, before: int | None, after: int | None, limit: int
) -> ItemPage:
    """Return a page of a session's transcript as clients see it; see `SessionLog.items`."""
    page = await log.items(before=before, after=after, limit=limit)
    return public_page(page)


async def read_turn(log: SessionLog, turn_id: str) -> TurnResult:
    """Return how a turn stands or ended, however long ago. Raises `NotFound`."""
    turn = await _find_turn(log, turn_id)
    if turn is None:
        raise NotFound(f"session {log.session_id} has no turn {turn_id}")
    return TurnResult(turn=turn, text=await read_last_words(log, turn.id))


async def _find_turn(log: SessionLog, turn_id: str) -> TurnInfo | None:
    newest = log.state.head.turn
    if newest is not None and newest.id == turn_id:
        return newest
    cursor: int | None = None
    while True:
        page = await log.turns(cursor=cursor)
        for found in page.turns:
            if found.id == turn_id:
                return found
        # Ids begin with the time, so what is older than the one that is wanted comes too late.
        if page.cursor is None or any(found.id < turn_id for found in page.turns):
            return None
        cursor = page.cursor


async def read_last_words(log: SessionLog, turn_id: str) -> str:
    """Return what the agent said last in a turn, reading back from the end of the log."""
    mine: list[Item] = []
    before: int | None = None
    while True:
        page = await log.items(before=before, limit=limits.SNAPSHOT_ITEMS_MAX)
        mine = [item for item in page.items if item.turn_id == turn_id] + mine
        text = last_words_of(mine)
        passed = mine and page.items and page.items[0].turn_id != turn_id
        if text or passed or not page.items:
            return text
        before = page.items[0].at
