"""Waits: every wait of a session has a reason that clients see; and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from vaala.changes import now_ms
from vaala_protocol.state import Wait


class Waits:
    """What goes on in a session right now, for its snapshot and events."""

    def __init__(self, publish: Callable[[tuple[Wait, ...]], None]) -> None:
        self._publish = publish
        self._waits: dict[object, Wait] = {}

    @contextmanager
    def on(self, subject: str, reason: str, *, timeout_s: float | None = None) -> Generator[None]:
        """Tell that something is waited for while the block runs; None: until interrupted."""
        since = now_ms()
        deadline = None if timeout_s is None else since + round(timeout_s * 1000)
        key = object()
        self._waits[key] = Wait(subject=subject, reason=reason, since=since, deadline_at=deadline)
        self._publish(self.snapshot())
        try:
            yield
        finally:
            del self._waits[key]
            self._publish(self.snapshot())

    def snapshot(self) -> tuple[Wait, ...]:
        return tuple(self._waits.values())


class WaitGraph:
    """Which session waits for which, in one conversation; an edge that closes a cycle is refused.

    Counted, since several calls of one turn may wait for the same session.
    """

    def __init__(self) -> None:
        self._edges: dict[tuple[str, str], int] = {}

    @contextmanager
    def edge(self, waiter: str, target: str) -> Generator[None]:
        """Hold an edge while the block runs. Raises ``ValueError`` that names the cycle."""
        if path := self._path(target, waiter):
            raise ValueError(" -> ".join([waiter, *path]))
        key = (waiter, target)
        self._edges[key] = self._edges.get(key, 0) + 1
        try:
            yield
        finally:
            self._edges[key] -= 1
            if not self._edges[key]:
                del self._edges[key]

    def waits(self, waiter: str, target: str) -> bool:
        return (waiter, target) in self._edges

    def _path(self, start: str, goal: str) -> list[str]:
        """Return the sessions from ``start`` to ``goal`` along the edges, or nothing."""
        paths, seen = [[start]], {start}
        while paths:
            path = paths.pop()
            if path[-1] == goal:
                return path
            for waiter, target in self._edges:
                if waiter == path[-1] and target not in seen:
                    seen.add(target)
                    paths.append([*path, target])
        return []
