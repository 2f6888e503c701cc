"""One change of a file at a time: calls of one step run side by side and may name one file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from msgspec import Struct, field


class _Entry(Struct):
    lock: trio.Lock = field(default_factory=trio.Lock)
    users: int = 0


class PathLocks:
    """Locks by name, in order of arrival. A name that nobody uses takes no memory."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[None]:
        """Hold the lock of a name. Cancel while waiting: it was never held."""
        entry = self._entries.setdefault(name, _Entry())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if entry.users == 0:
                del self._entries[name]

    def __len__(self) -> int:
        return len(self._entries)
