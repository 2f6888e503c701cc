"""`Connector`: keeps a client connected, over as many connections and servers as it takes.

A server that is lost is looked for again and, when it is gone, started again. One that was
stopped on purpose is not started against that wish: only a server that somebody else starts in
`limits.STOPPED_S` is taken in its place.
"""

from __future__ import annotations

from typing import Any, Protocol

import trio
from msgspec import Struct

from vaala.client import limits
from vaala.client.errors import CannotConnect, Disconnected
from vaala.client.finder import Finder
from vaala.client.link import Link, open_link
from vaala.client.retry import pauses_s
from vaala_protocol.errors import BadRequest, Incompatible, Outdated, Refused
from vaala_protocol.methods.base import Notification, Request


class Guest(Protocol):
    """What lives over the connections."""

    async def greet(self, link: Link) -> None:
        """Say who we are on a new connection.

        Raises `Incompatible` when the two cannot speak with each other, other kinds of `Refused`
        when it does not come about now, `Disconnected` when another server is to be looked for.
        """
        ...

    def connected(self, link: Link) -> None:
        """A connection is ready for requests."""
        ...

    def disconnected(self, why: str) -> None:
        """It has ended; another one may follow."""
        ...

    def hear(self, note: Notification) -> None: ...

    async def serve(self, params: Request[Any]) -> object: ...


class _Search(Struct, frozen=True):
    """How long a server is looked for, and whether it may be started."""

    deadline: float
    may_start: bool


class Connector:
    """One task runs `run`."""

    def __init__(self, finder: Finder, guest: Guest, *, start: bool) -> None:
        self._finder = finder
        self._guest = guest
        self._start = start
        self._link: Link | None = None
        self._was_connected = False
        self._failure: Exception | None = None
        self._changed = trio.Event()

    async def link(self) -> Link:
        """Return the connection, waiting until there is one.

        Raises `Disconnected` once the server has been given up.
        """
        while self._link is None or self._link.ended.is_set():
            if self._failure is not None:
                # A new one each time: an exception that is raised twice grows its traceback.
                raise Disconnected(f"the server is gone: {self._failure}", outcome_known=True)
            await self._changed.wait()
        return self._link

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Connect, again and again; started with the first connection.

        Raises `CannotConnect`, `Disconnected` and `Refused` kinds when that does not come about.
        Returns when a server that was lost has been given up.
        """
        search = self._search(stopped=False)
        pauses = pauses_s()
        while True:
            try:
                lost = await self._hold(search, task_status)
                search = self._search(stopped=lost.stopped)
                if lost.useful:  # else this could go round and round with a server that crashes
                    pauses = pauses_s()
            except (CannotConnect, Disconnected, Refused) as error:
                if self._is_final(error, search):
                    if not self._was_connected:
                        raise
                    self._failure = error
                    self._have(None)
                    self._guest.disconnected(f"the server is gone: {error}")
                    return
            await trio.sleep(next(pauses))

    async def _hold(self, search: _Search, task_status: trio.TaskStatus[None]) -> Link:
        """Hold one connection for as long as it lasts; return it when it has ended.

        Raises what prevents it.
        """
        async with (
            self._finder.channel(start=search.may_start) as channel,
            open_link(channel, self._guest.hear, self._guest.serve) as link,
        ):
            await self._guest.greet(link)
            link.useful = False
            self._have(link)
            if not self._was_connected:
                self._was_connected = True
                task_status.started()
            await link.ended.wait()
        lost = self._link
        if lost is None:  # what broke the channel has ended the block above in its midst
            raise Disconnected("the connection ended before it was of use", outcome_known=True)
        self._have(None)
        self._guest.disconnected(lost.why)
        return lost

    def _search(self, *, stopped: bool) -> _Search:
        time_s = limits.STOPPED_S if stopped else limits.RECONNECT_S
        return _Search(trio.current_time() + time_s, self._start and not stopped)

    def _is_final(self, problem: Exception, search: _Search) -> bool:
        match problem:
            case CannotConnect() | Outdated() if not self._was_connected:
                return True
            case Outdated():
                pass  # it ends: a newer one may follow
            case Incompatible() | BadRequest():
                return True
            case _:
                pass  # the server may be too busy, or just ending
        return trio.current_time() > search.deadline

    def _have(self, link: Link | None) -> None:
        self._link = link
        self._changed.set()
        self._changed = trio.Event()
        if link is not None:
            self._guest.connected(link)
