"""`exit_when_idle`: a server that nobody uses gives its memory back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

LOOKS: Final = 20
"""How often it is looked within the time that is allowed: the end comes at most 5 % late."""
LOOK_S_MAX: Final = 15.0


async def exit_when_idle(
    is_busy: Callable[[], bool],
    used_at: Callable[[], float],
    end: Callable[[], None],
    idle_s: float,
) -> None:
    """Call ``end`` when nothing was done for ``idle_s``; then return.

    ``is_busy`` is asked at each look; ``used_at`` tells the time, on trio's clock, of what was done
    between two of them.
    """
    idle_since = trio.current_time()
    while trio.current_time() - idle_since < idle_s:
        await trio.sleep(min(LOOK_S_MAX, idle_s / LOOKS))
        idle_since = trio.current_time() if is_busy() else max(idle_since, used_at())
    end()
