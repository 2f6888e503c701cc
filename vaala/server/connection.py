"""`serve_connection`: one client, from its first message to its end.

    reader   takes messages in; starts a task for each request, at most so many at a time
    writer   sends what the outbox has: answers, then what is watched
    others   one for each request in work, one for each conversation that is watched

All of them live in one nursery and end with the connection. What a client sends can end its own
connection at most: each request is fenced, and what the client does not read holds up nobody else.
"""

from __future__ import annotations

import logging
import math

import trio

from vaala.server import limits
from vaala.server.api import Api
from vaala.server.api.caller import Caller
from vaala.server.api.offers import Offers
from vaala.server.api.watches import Watches
from vaala.server.asking import Asking
from vaala.server.clients import Level
from vaala.server.dispatch import Dispatcher, Together
from vaala.server.notices import Notices
from vaala.server.outbox import Outbox
from vaala.server.wire import PeerInfo, Wire, WireClosed
from vaala_protocol.close_codes import FAULT, GOING_AWAY
from vaala_protocol.rpc import Answer, Call, Ignored, Note, Reply, server_peer

__all__ = ["PeerInfo", "Wire", "WireClosed", "serve_connection"]

log = logging.getLogger(__name__)


async def serve_connection(api: Api, wire: Wire, peer: PeerInfo) -> None:
    """Serve one client until it goes; the wire is closed on return, however that comes.

    Raises nothing that the client has caused. Cancel: requests in work are given up as if the
    client had gone; the client is told that the server ends, within `limits.CLOSE_S`.
    """
    connection = _Connection(api, wire, peer)
    with api.clients.join(connection):
        await connection.run()


class _Connection:
    """A `vaala.server.clients.Client`."""

    def __init__(self, api: Api, wire: Wire, peer_info: PeerInfo) -> None:
        self._api = api
        self._wire = wire
        self._peer_info = peer_info
        self._peer = server_peer()
        self._outbox = Outbox()
        self._notices = Notices(self._outbox)
        self._asking = Asking(self._peer, self._outbox)
        self._writing = trio.CancelScope(shield=True)

    def notify(self, level: Level, text: str) -> None:
        self._notices.add(level, text)

    async def run(self) -> None:
        code, reason = GOING_AWAY, "the server is closing"
        try:
            with self._asking.open(), Offers(self._api.runtime, self._asking).held() as offers:
                await self._serve(offers)
        except Exception:
            code, reason = FAULT, "a fault in the server ended this connection"
            raise
        finally:
            await self._close(code, reason)

    async def _serve(self, offers: Offers) -> None:
        async with trio.open_nursery() as nursery:
            watches = Watches(self._api.runtime, nursery, self._outbox)
            caller = Caller(self._api, self._peer_info, watches, offers)
            nursery.start_soon(self._write, nursery.cancel_scope)
            try:
                await self._read(caller, Dispatcher(nursery, caller, self._peer, self._outbox))
            finally:
                self._outbox.end()
                self._writing.deadline = trio.current_time() + limits.CLOSE_S
            nursery.cancel_scope.cancel()

    async def _write(self, connection: trio.CancelScope) -> None:
        """Send until the reader has ended, and then the answers that still wait.

        Shielded: nothing can be sent behind half a message, not even why the connection ends.
        """
        with self._writing:
            try:
                await self._outbox.run(self._wire)
            except WireClosed:
                connection.cancel()

    async def _close(self, code: int, reason: str) -> None:
        """Tell the client that it is over, unless the last message did not get through."""
        with trio.CancelScope(deadline=trio.current_time() + limits.CLOSE_S, shield=True):
            if not self._writing.cancelled_caught:
                await self._wire.close(code, reason)
        self._wire.abort()

    async def _read(self, caller: Caller, dispatcher: Dispatcher) -> None:
        """Take messages in until the client has gone, or does not say in time who it is."""
        hello_until = trio.current_time() + limits.HELLO_S
        while True:
            await self._outbox.room()
            message: str | bytes | None = None
            with trio.CancelScope(deadline=math.inf if caller.client else hello_until):
                try:
                    message = await self._wire.receive()
                except WireClosed:
                    return
            if message is None:
                log.info("%s has not said who it is in %g s", caller, limits.HELLO_S)
                return
            await self._take(message, dispatcher)

    async def _take(self, message: str | bytes, dispatcher: Dispatcher) -> None:
        incoming = self._peer.receive(message)
        together = Together(sum(isinstance(one, Call) for one in incoming))
        for one in incoming:
            match one:
                case Call() | Note():
                    await dispatcher.begin(one, together)
                case Answer():
                    self._asking.answered(one)
                case Reply(data=data):
                    self._outbox.put(data)
                case Ignored(reason=reason):
                    log.debug("from %s: %s", self._peer_info.address, reason)
