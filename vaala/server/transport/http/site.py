"""`Site`: what there is over plain HTTP, and what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from vaala.server.transport.head import Head
from vaala.server.transport.http.answer import Answer, error_answer

Handler: TypeAlias = Callable[[Head, str], Awaitable[Answer]]
"""Gets what follows the route in the path, percent signs resolved; raises `Refused` kinds."""


class Route(Struct, frozen=True):
    """Answers GET and HEAD of its path and, when ``below``, of everything below it."""

    path: str
    about: str
    """One line for people."""
    handle: Handler
    below: bool = False
    open: bool = False
    """Needs no token: there is nothing of the user in it."""

    def rest_of(self, path: str) -> str | None:
        """Return what follows the route in a path, None when the path is another's."""
        if path == self.path:
            return ""
        if self.below and path.startswith(f"{self.path}/"):
            return path[len(self.path) + 1 :]
        return None


class Site:
    """An immutable set of routes."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = tuple(routes)

    def find(self, path: str) -> tuple[Route, str] | None:
        """Return the route for a path, and what follows it."""
        for route in self._routes:
            rest = route.rest_of(path)
            if rest is not None:
                return route, rest
        return None

    def nothing_at(self, path: str) -> Answer:
        """Return the answer for a path that nothing is at: it lists what there is."""
        there = (f"{route.path}{'/...' if route.below else ''}" for route in self._routes)
        return error_answer(404, f"there is nothing at {path[:200]}; there are {', '.join(there)}")
