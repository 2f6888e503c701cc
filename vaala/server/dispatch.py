"""`Dispatcher`: from the requests of one client to their answers."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial

import trio

from vaala.server import limits
from vaala.server.api.caller import Caller, Opened
from vaala.server.api.method import Method, Outcome, Urgent
from vaala.server.api.table import METHODS
from vaala.server.fence import refusal_of
from vaala.server.order import Lanes, Ticket
from vaala.server.outbox import Outbox
from vaala_protocol.errors import BadRequest, Refused
from vaala_protocol.methods.base import Request
from vaala_protocol.methods.runtime import InitializeParams
from vaala_protocol.rpc import Call, Note, Peer

log = logging.getLogger(__name__)


class Together:
    """The calls of one message: the answers of a batch leave as one message, when all are there."""

    def __init__(self, calls: int) -> None:
        self._waiting = calls
        self._begin: list[Callable[[], None]] = []

    def answered(self, begin: Callable[[], None] | None) -> None:
        """One of them has its answer; what is to begin behind it does when all have left."""
        self._waiting -= 1
        if begin is not None:
            self._begin.append(begin)
        if self._waiting == 0:
            for each in self._begin:
                each()


class Dispatcher:
    """Requests are worked on side by side, those of one lane in their order.

    An exception that is no refusal is a bug: the client gets an error with a trace id, the log has
    the traceback under it, and the connection lives.
    """

    def __init__(self, nursery: trio.Nursery, caller: Caller, peer: Peer, outbox: Outbox) -> None:
        self._nursery = nursery
        self._caller = caller
        self._peer = peer
        self._outbox = outbox
        self._lanes = Lanes()
        self._bulky = trio.Semaphore(limits.BULKY_ANSWERS_MAX)
        self._notes = 0

    async def begin(self, asked: Call | Note, together: Together) -> None:
        """Begin to work on a request.

        The first one of a connection is done when this returns: what follows depends on it. How
        many calls are in work is bounded by the `Peer`; a note that is one too many is dropped.
        """
        if not isinstance(asked.params, Request):
            return  # a server listens to no notification
        is_first = self._caller.client is None
        if is_first and not isinstance(asked.params, InitializeParams):
            early = BadRequest(f"{InitializeParams.method} comes first: say who you are")
            self._reply(asked, together, early)
            return
        if isinstance(asked, Note) and self._notes >= limits.NOTES_IN_WORK_MAX:
            log.warning("%s: dropped a %s that wants no answer", self._caller, asked.method)
            return
        self._notes += isinstance(asked, Note)
        method = METHODS[asked.method]
        lane = method.lane(asked.params)
        ticket = self._lanes.ticket(lane, asked.params)
        if is_first:
            await self._run(asked, together, method, lane, ticket)
        else:
            self._nursery.start_soon(self._run, asked, together, method, lane, ticket)

    async def _run(
        self, asked: Call | Note, together: Together, method: Method, lane: Hashable, ticket: Ticket
    ) -> None:
        rest: Callable[[], Awaitable[Outcome]] | None = None
        with self._lanes.hold(lane, ticket):
            if method.urgent is not None and ticket.in_front:
                await self._run_early(asked, together, method, method.urgent, ticket)
            else:
                await ticket.turn()
                # Behind the turn: who waits for it must not hold the place of the one before.
                async with self._memory_for(method):
                    handle = partial(method.handle, self._caller, asked.params)
                    outcome = await self._fenced(method, handle)
                    if method.rest is None or isinstance(outcome, Refused):
                        self._reply(asked, together, outcome)
                    else:
                        rest = partial(method.rest, self._caller, asked.params, outcome)
        if rest is not None:
            self._reply(asked, together, await self._fenced(method, rest))
        self._notes -= isinstance(asked, Note)

    async def _run_early(
        self, asked: Call | Note, together: Together, method: Method, urgent: Urgent, ticket: Ticket
    ) -> None:
        in_front = ticket.in_front
        handle = partial(method.handle, self._caller, asked.params)
        early = await self._fenced(method, handle)
        is_answer = isinstance(early, Refused) or urgent.is_answer(early)
        if is_answer:
            self._reply(asked, together, early)
        await ticket.turn()
        if isinstance(early, Refused):
            return
        handle = partial(urgent.in_turn, self._caller, asked.params, in_front)
        outcome = await self._fenced(method, handle)
        if not is_answer:
            self._reply(asked, together, outcome)

    @asynccontextmanager
    async def _memory_for(self, method: Method) -> AsyncGenerator[None]:
        """Wait until one more large answer may be made, and hold its place until it is put."""
        if not method.bulky:
            yield
            return
        async with self._bulky:
            await self._outbox.room()
            yield

    async def _fenced(
        self, method: Method, handle: Callable[[], Awaitable[Outcome]]
    ) -> Outcome | Refused:
        try:
            return await handle()
        except Exception as error:
            return refusal_of(error, f"{method.name} of {self._caller}")

    def _reply(self, asked: Call | Note, together: Together, outcome: Outcome | Refused) -> None:
        begin = outcome.begin if isinstance(outcome, Opened) else None
        if isinstance(asked, Note):
            if begin is not None:
                begin()
            return
        if (message := self._message(asked, outcome)) is not None:
            self._outbox.put(message)
        together.answered(begin)

    def _message(self, call: Call, outcome: Outcome | Refused) -> bytes | None:
        if isinstance(outcome, Refused):
            return self._peer.refuse(call.id, outcome)
        result = outcome.result if isinstance(outcome, Opened) else outcome
        try:
            return self._peer.answer(call.id, result)
        except Exception as error:
            # Not written, so the call is still open.
            return self._peer.refuse(call.id, refusal_of(error, f"{call.method}: its answer"))
