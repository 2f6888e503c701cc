"""`Clients`: the connections that a server has now."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, Protocol

import trio

Level = Literal["info", "warning", "error"]


class Client(Protocol):
    """A connection, as the rest of the server sees it."""

    def notify(self, level: Level, text: str) -> None:
        """Give the client one line for the person. Never waits; a client that does not read keeps
        the newest few."""
        ...


class Clients:
    """A connection is in here for as long as it lives."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()
        self.used_at = -math.inf
        """When the server was last used by anybody who is not in here any more, on trio's clock."""

    def __len__(self) -> int:
        return len(self._clients)

    @contextmanager
    def join(self, client: Client) -> Generator[None]:
        """Count a client while the block runs."""
        self._clients.add(client)
        try:
            yield
        finally:
            self._clients.discard(client)
            self.visited()

    def visited(self) -> None:
        """Somebody used the server without staying: by plain HTTP, say."""
        self.used_at = trio.current_time()

    def notify(self, level: Level, text: str) -> None:
        """Give every client one line for the person."""
        for client in self._clients:
            client.notify(level, text)
