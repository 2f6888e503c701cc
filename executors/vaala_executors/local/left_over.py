"""Processes that nobody owns any more, found by the mark in their environment.

The supervisor ends a killed runtime's commands. This is for the case that it was killed too.
It needs /proc; elsewhere nothing is found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from vaala_executors.local.marker import marker_of, runtime_is_gone
from vaala_executors.local.supervisor import tree
from vaala_executors.local.supervisor.wire import GRACE_SECONDS, KILL_SECONDS

POLL_SECONDS = 0.05


def end_left_over() -> list[int]:
    """End the commands of runtimes that are gone; return their pids. Blocks: for a thread."""
    return _end(lambda marker: runtime_is_gone(marker), GRACE_SECONDS)


def end_marked(marker: str) -> list[int]:
    """Kill what bears exactly this mark; return the pids. Blocks: for a thread."""
    return _end(lambda found: found == marker, 0.0)


def _end(wanted: Callable[[str], bool], grace_seconds: float) -> list[int]:
    """TERM, a grace, KILL; returns when all are gone or the kernel does not let them go."""
    if not tree.LINUX:
        return []
    begun = time.monotonic()
    ended: dict[int, int] = {}
    while True:
        found = _find(wanted)
        elapsed = time.monotonic() - begun
        if not found or elapsed > grace_seconds + KILL_SECONDS:
            return sorted(ended)
        for pid, start in found.items():
            if elapsed >= grace_seconds:
                tree.send(pid, start, signal.SIGKILL)
            elif ended.get(pid) != start:
                tree.send(pid, start, signal.SIGTERM)
                tree.send(pid, start, signal.SIGCONT)
        ended.update(found)
        time.sleep(POLL_SECONDS)


def _find(wanted: Callable[[str], bool]) -> dict[int, int]:
    """Return pid and start time of the living processes whose mark is wanted."""
    me = os.getpid()
    found: dict[int, int] = {}
    for pid, row in tree.table().items():
        if pid == me or row.state in "ZX":
            continue
        marker = marker_of(pid)
        if marker is not None and wanted(marker):
            found[pid] = row.start
    return found
