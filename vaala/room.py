"""Which open conversations end to make room: those that nobody needs, longest unused first.

Nothing is lost with one that was written down: it is opened again when it is next asked for. An
empty one is nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vaala import limits

if TYPE_CHECKING:
    from vaala.conversation import Conversation


class Openings:
    """Stops what is too many after an opening. One look costs as many steps as are open, so that
    the next comes when a sixteenth more may be."""

    def __init__(self, conversations: Iterable[Conversation]) -> None:
        self._conversations = conversations
        self._unseen = 0
        """How many more may open before the next look."""

    def opened(self, now: float) -> None:
        """One more is open.

        Those in use are left alone, and those that were asked for something a moment ago: a
        request may still be on its way to them. Of all, some more than needed end, so that the
        next openings end none.
        """
        if self._unseen:
            self._unseen -= 1
            return
        running = [one for one in self._conversations if not one.stopping]
        empty = [one for one in running if one.empty]
        if len(empty) > limits.EMPTY_CONVERSATIONS_MAX:
            _stop(empty, len(empty) - limits.EMPTY_CONVERSATIONS_MAX, now)
        if len(running) > limits.OPEN_CONVERSATIONS_MAX:
            _stop(running, len(running) - limits.OPEN_CONVERSATIONS_MAX * 7 // 8, now)
        self._unseen = len(running) // 16


def _stop(conversations: Iterable[Conversation], count: int, now: float) -> None:
    free = [
        one
        for one in conversations
        if not one.used and now - one.used_at >= limits.REQUEST_ON_ITS_WAY_S
    ]
    for one in sorted(free, key=lambda one: one.used_at)[:count]:
        one.stop()
