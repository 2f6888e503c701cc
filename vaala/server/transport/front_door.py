"""`FrontDoor`: what each connection asks for, and what keeps connections apart.

Whatever a connection does ends with that connection: it is fenced, bounded in time and size, and
its stream can be closed by force.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import h11
import trio

from vaala.server.transport import limits
from vaala.server.transport.accepting import connections_max
from vaala.server.transport.guard import Guard
from vaala.server.transport.head import Head, new_connection, read_head
from vaala.server.transport.refusal import Refusal
from vaala.server.transport.stream import ClientStream
from vaala.server.transport.upgrade import check_upgrade
from vaala.server.wire import PeerInfo, Wire

if TYPE_CHECKING:
    from vaala.server.transport.http.site import Site

log = logging.getLogger(__name__)

Speak: TypeAlias = Callable[[Wire, PeerInfo], Awaitable[None]]
MakeSite: TypeAlias = Callable[[], "Site"]


class FrontDoor:
    """Give it to `vaala.server.transport.accepting.accept`."""

    def __init__(self, guard: Guard, speak: Speak, make_site: MakeSite) -> None:
        """``speak`` runs a WebSocket's wire until it is over; ``make_site`` is called at the first
        request over plain HTTP, whose modules are imported only then. It raises `Refusal` when
        there can be no site."""
        self._guard = guard
        self._speak = speak
        self._make_site = make_site
        self._site: Site | None = None
        self._strangers: dict[ClientStream, None] = {}
        self._strangers_max = min(limits.STRANGERS_MAX, (connections_max() + 1) // 2)

    async def serve(self, connected: socket.socket, peer: PeerInfo) -> None:
        """Serve one connection until it is over, and close it.

        Raises nothing but a cancel: an error is logged with a trace id.
        """
        stream = ClientStream(connected)
        try:
            self._let_in(stream)
            await self._answer(stream, peer)
            await stream.linger()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client has gone, or was aborted
        except* Exception:
            log.exception("a connection failed (trace %s)", secrets.token_hex(4))
            stream.abort()
        finally:
            self._strangers.pop(stream, None)
            stream.close()

    def _let_in(self, stream: ClientStream) -> None:
        """Let a stranger wait for a moment; too many of them push out the one who waits longest.

        So those who open connections and say nothing cannot keep anyone else out.
        """
        if len(self._strangers) >= self._strangers_max:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()
        self._strangers[stream] = None

    async def _answer(self, stream: ClientStream, peer: PeerInfo) -> None:
        connection = new_connection()
        try:
            head = await read_head(stream, connection, within_s=limits.HEAD_S)
            if head is None:
                return
            self._guard.check_place(head, peer.address, browsers=not stream.unix)
            if head.upgrades:
                await self._answer_upgrade(stream, head, peer)
            else:
                await self._answer_http(stream, connection, head, peer)
        except Refusal as refusal:
            with trio.move_on_after(limits.HTTP_ANSWER_S):
                await stream.send_all(refusal.render())

    async def _answer_upgrade(self, stream: ClientStream, head: Head, peer: PeerInfo) -> None:
        check_upgrade(head)
        headers = self._guard.prove(head, peer.address)
        self._strangers.pop(stream, None)
        # Not at the top: it takes as long to import as trio itself, and a start should be short.
        from vaala.server.transport.websocket import serve_websocket

        await serve_websocket(stream, head, partial(self._speak_to, peer), headers)

    async def _speak_to(self, peer: PeerInfo, wire: Wire) -> None:
        await self._speak(wire, peer)

    async def _answer_http(
        self, stream: ClientStream, connection: h11.Connection, head: Head, peer: PeerInfo
    ) -> None:
        if self._site is None:
            self._site = self._make_site()
        from vaala.server.transport.http.talk import Talk

        def trust() -> None:
            self._strangers.pop(stream, None)

        await Talk(stream, connection, self._site, self._guard, peer, trust).run(head)
