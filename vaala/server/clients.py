"""`Clients`: the connections that a server has now."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, Protocol

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

    def notify(self, level: Level, text: str) -> None:
        """Give every client one line for the person."""
        for client in self._clients:
            client.notify(level, text)
