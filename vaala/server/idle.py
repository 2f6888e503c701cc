"""`exit_when_idle`: a server that nobody uses gives its memory back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

LOOKS: Final = 20
"""How often it is looked within the time that is allowed: the end comes at most 5 % late."""
LOOK_S_MAX: Final = 15.0


async def exit_when_idle(
    is_busy: Callable[[], bool], end: Callable[[], None], idle_s: float
) -> None:
    """Call ``end`` when ``is_busy`` has been false at each look for ``idle_s``; then return."""
    idle_since = trio.current_time()
    while trio.current_time() - idle_since < idle_s:
        await trio.sleep(min(LOOK_S_MAX, idle_s / LOOKS))
        if is_busy():
            idle_since = trio.current_time()
    end()
