"""`accept`: takes connections for as long as the server runs, whatever the system says to that."""

from __future__ import annotations

import ipaddress
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from vaala.server.transport import limits
from vaala.server.transport.listening import Listening
from vaala.server.transport.refusal import Refusal
from vaala.server.transport.stream import ClientStream
from vaala.server.wire import PeerInfo

log = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[socket.socket, PeerInfo], Awaitable[None]]
"""Owns the socket that it is given. Raises nothing but a cancel."""

_FULL = Refusal(503, "this server has all the connections that it can have: close some")


async def accept(listening: Listening, serve: Serve) -> None:
    """Run until cancelled; a cancel ends all connections, too."""
    async with trio.open_nursery() as nursery:
        door = _Door(nursery, serve, connections_max())
        for listener in listening.sockets:
            nursery.start_soon(door.take_all, listener, listening)


def connections_max() -> int:
    """Return how many connections there may be at once: descriptors are for other things, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits.CONNECTIONS_MAX
    return max(1, min(limits.CONNECTIONS_MAX, soft - limits.DESCRIPTORS_KEPT))


class _Door:
    def __init__(self, nursery: trio.Nursery, serve: Serve, most: int) -> None:
        self._nursery = nursery
        self._serve = serve
        self._most = most
        self._open = 0
        self._turned_away = 0

    async def take_all(self, listener: socket.socket, listening: Listening) -> None:
        """Take connections from one listener until cancelled (H6-4)."""
        failing = False
        while True:
            await trio.lowlevel.wait_readable(listener)
            try:
                connected, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue  # it has gone again
            except OSError as error:
                if not failing:
                    log.error("cannot take connections now: %s", error.strerror or error)
                failing = True
                await trio.sleep(limits.ACCEPT_RETRY_S)
                continue
            failing = False
            self._let_in(connected, peer_of(address, listening))

    def _let_in(self, connected: socket.socket, peer: PeerInfo) -> None:
        if self._open < self._most:
            self._open += 1
            self._nursery.start_soon(self._run, connected, peer)
        elif self._turned_away < limits.TURNED_AWAY_MAX:
            self._turned_away += 1
            self._nursery.start_soon(self._turn_away, connected)
        else:
            connected.close()

    async def _run(self, connected: socket.socket, peer: PeerInfo) -> None:
        try:
            await self._serve(connected, peer)
        finally:
            self._open -= 1

    async def _turn_away(self, connected: socket.socket) -> None:
        stream = ClientStream(connected)
        try:
            with trio.move_on_after(limits.LINGER_S):
                await stream.send_all(_FULL.render())
            await stream.linger()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            stream.close()
            self._turned_away -= 1


def peer_of(address: tuple[str, int] | str, listening: Listening) -> PeerInfo:
    """Return who connected; on a unix socket nobody has an address."""
    if isinstance(address, str | bytes):
        return PeerInfo(f"unix:{listening.path}", local=True)
    host, port = address[:2]
    return PeerInfo(f"{host}:{port}", local=ipaddress.ip_address(host).is_loopback)
