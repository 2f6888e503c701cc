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


def make_room(conversations: Iterable[Conversation], now: float) -> None:
    """Stop what is too many. Cheap while nothing is.

    Those in use are left alone, and those that were asked for something a moment ago: a request
    may still be on its way to them. Of all, some more than needed end, so that the next openings
    cost no search.
    """
    running = [one for one in conversations if not one.stopping]
    empty = [one for one in running if one.empty]
    if len(empty) > limits.EMPTY_CONVERSATIONS_MAX:
        _stop(empty, len(empty) - limits.EMPTY_CONVERSATIONS_MAX, now)
    if len(running) > limits.OPEN_CONVERSATIONS_MAX:
        _stop(running, len(running) - limits.OPEN_CONVERSATIONS_MAX * 7 // 8, now)


def _stop(conversations: Iterable[Conversation], count: int, now: float) -> None:
    free = [
        one
        for one in conversations
        if not one.used and now - one.used_at >= limits.REQUEST_ON_ITS_WAY_S
    ]
    for one in sorted(free, key=lambda one: one.used_at)[:count]:
        one.stop()
