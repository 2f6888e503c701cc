"""`Served`: the server's requests that this client works on."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import trio

from vaala.client import limits
from vaala.client.errors import Disconnected
from vaala_protocol.errors import Failed, Overloaded, Refused, TimedOut
from vaala_protocol.methods.base import Request
from vaala_protocol.rpc.incoming import Call, Id
from vaala_protocol.rpc.peer import Peer

log = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[Request[Any]], Awaitable[object]]
"""Does what the server asks for and returns the result; raises `Refused` kinds."""


class Served:
    """Each request runs in a task of its own, and is answered whatever happens in it."""

    def __init__(
        self,
        serve: Serve,
        peer: Peer,
        send: Callable[[bytes], None],
        nursery: trio.Nursery,
    ) -> None:
        self._serve = serve
        self._peer = peer
        self._send = send
        self._nursery = nursery
        self._scopes: dict[Id, trio.CancelScope] = {}

    def take(self, call: Call) -> None:
        """Begin to work on a request; one too many is refused at once."""
        if len(self._scopes) >= limits.SERVED_MAX:
            self._refuse(call, Overloaded(f"{limits.SERVED_MAX} requests are worked on"))
            return
        self._scopes[call.id] = trio.CancelScope()
        self._nursery.start_soon(self._work, call, self._scopes[call.id])

    def cancel(self, id: Id) -> None:
        """Nobody wants the answer any more; harmless when it is under way."""
        if id in self._scopes:
            self._scopes[id].cancel()

    async def _work(self, call: Call, scope: trio.CancelScope) -> None:
        outcome: object = TimedOut(f"{call.method} was cancelled")
        with scope:
            outcome = await self._outcome(call)
        del self._scopes[call.id]
        if isinstance(outcome, Refused):
            self._refuse(call, outcome)
        else:
            self._answer(self._peer.answer(call.id, outcome))

    async def _outcome(self, call: Call) -> object:
        try:
            return await self._serve(call.params)
        except Refused as refused:
            return refused
        except Exception as error:
            trace = secrets.token_hex(4)
            log.exception("%s failed (trace %s)", call.method, trace)
            return Failed(f"{call.method} failed in the client: {error!r}", trace=trace)

    def _refuse(self, call: Call, error: Refused) -> None:
        self._answer(self._peer.refuse(call.id, error))

    def _answer(self, message: bytes | None) -> None:
        if message is None:
            return
        # A server that is gone has forgotten what it asked for.
        with contextlib.suppress(Disconnected):
            self._send(message)
