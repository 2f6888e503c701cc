"""`Link`: one connection to a server, from the first message to the last.

One task reads and one writes. What was asked and not answered when the connection ends raises
`Disconnected`, which tells whether it can have reached the server.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import trio

from vaala.client import limits
from vaala.client.channel import Channel, ChannelClosed
from vaala.client.errors import Disconnected
from vaala.client.serving import Serve, Served
from vaala_protocol.base import Value
from vaala_protocol.close_codes import GOING_AWAY
from vaala_protocol.errors import TimedOut
from vaala_protocol.methods.base import Notification, Request
from vaala_protocol.methods.client import ClientCancelNotification
from vaala_protocol.rpc.incoming import Answer, Call, Ignored, Incoming, Note, Reply
from vaala_protocol.rpc.peer import client_peer

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Value)

Hear: TypeAlias = Callable[[Notification], None]
"""Takes what the server tells, in order, at once."""


class _Pending:
    """A request of ours that waits for its answer."""

    __slots__ = ("deliver", "outcome", "sent", "settled")

    def __init__(self, deliver: Callable[[Any], None] | None) -> None:
        self.deliver = deliver
        self.sent = False
        self.settled = trio.Event()
        self.outcome: Any = None

    def settle(self, outcome: Any) -> None:
        self.outcome = outcome
        if self.deliver is not None and not isinstance(outcome, Exception):
            self.deliver(outcome)
        self.settled.set()


class Link:
    """Made by `open_link`. Bounded: `limits.REQUESTS_MAX` requests wait for answers, and
    `limits.SERVED_MAX` of the server's are worked on."""

    def __init__(self, channel: Channel, hear: Hear, serve: Serve, nursery: trio.Nursery) -> None:
        self.ended = trio.Event()
        self.why = ""
        """Why it has ended, for people."""
        self.stopped = False
        """It has ended because the server was stopped on purpose."""
        self.useful = False
        """Something has come over it."""
        self._channel = channel
        self._hear = hear
        self._peer = client_peer()
        self._pending: dict[int, _Pending] = {}
        self._places = trio.Semaphore(limits.REQUESTS_MAX)
        self._outbox, self._outgoing = trio.open_memory_channel[tuple[bytes, _Pending | None]](
            limits.OUTGOING_MESSAGES_MAX
        )
        self._served = Served(serve, self._peer, self._send, nursery)

    @property
    def near(self) -> bool:
        """The server is on this machine."""
        return self._channel.near

    async def ask(
        self,
        params: Request[R],
        deliver: Callable[[R], None] | None = None,
        *,
        timeout_s: float = limits.REQUEST_S,
    ) -> R:
        """Send a request and return its answer.

        ``deliver`` is called with the answer before anything is heard that the server has sent
        after it. Raises what the server refused with, `Malformed` for an answer of another shape,
        `Disconnected`, and `TimedOut`. Cancel, and that: the request may be done all the same; its
        answer is dropped.
        """
        with trio.move_on_after(timeout_s):
            return await self._ask(params, deliver)
        raise TimedOut(
            f"the server did not answer {params.method} within {timeout_s:g} s; "
            "it is not known what was done"
        )

    async def _ask(self, params: Request[R], deliver: Callable[[R], None] | None) -> R:
        async with self._places:
            self._check_open()
            id, message = self._peer.ask(params)
            pending = self._pending[id] = _Pending(deliver)
            try:
                self._send(message, pending)
                await pending.settled.wait()
            finally:
                del self._pending[id]
                self._peer.forget(id)
        if isinstance(pending.outcome, Exception):
            raise pending.outcome
        result: R = pending.outcome
        return result

    async def read(self) -> None:
        """Take in what comes until the connection ends."""
        try:
            while True:
                for incoming in self._peer.receive(await self._channel.receive()):
                    self._take(incoming)
                self.useful = True
        except ChannelClosed as closed:
            self.end(str(closed), stopped=closed.code == GOING_AWAY)
        except Disconnected:
            pass  # it ended while an answer was to be sent

    async def write(self) -> None:
        """Send what goes out until the connection ends."""
        try:
            async for message, pending in self._outgoing:
                if pending is not None:
                    pending.sent = True
                await self._channel.send(message)
        except ChannelClosed as closed:
            self.end(str(closed), stopped=closed.code == GOING_AWAY)

    async def watch(self) -> None:
        """Make sure now and then that the server lives; the socket alone does not tell."""
        try:
            while True:
                await trio.sleep(limits.PING_PERIOD_S)
                with trio.move_on_after(limits.PING_S) as scope:
                    await self._channel.check()
                if scope.cancelled_caught:
                    # The ping may be sent half: nothing can be sent any more.
                    self.end(f"the server gave no sign of life for {limits.PING_S:g} s")
                    return
        except ChannelClosed as closed:
            self.end(str(closed), stopped=closed.code == GOING_AWAY)

    def end(self, why: str, *, stopped: bool = False) -> None:
        """The connection is over: whoever waits for an answer is told. Once; then harmless."""
        if self.ended.is_set():
            return
        self.why = why
        self.stopped = stopped
        self.ended.set()
        for pending in self._pending.values():
            if not pending.settled.is_set():
                pending.settle(self._broken(known=not pending.sent))

    def _take(self, incoming: Incoming) -> None:
        match incoming:
            case Note(params=ClientCancelNotification(request_id=id)):
                self._served.cancel(id)
            case Note(params=Notification() as note):
                self._hear(note)
            case Answer(id=id, result=result, error=error):
                if (pending := self._pending.get(id)) is not None:
                    pending.settle(result if error is None else error)
            case Call():
                self._served.take(incoming)
            case Reply(data=data):
                self._send(data)
            case Note() | Ignored():
                log.debug("the server sent what is of no use here: %s", incoming)

    def _send(self, message: bytes, pending: _Pending | None = None) -> None:
        """Put a message into the queue of the writer, or end the connection when that is full.

        Waiting here could stop the reader, and then two sides would wait for each other.
        """
        self._check_open()
        try:
            self._outbox.send_nowait((message, pending))
        except trio.WouldBlock:
            self.end("the server takes nothing any more")
            self._check_open()

    def _check_open(self) -> None:
        if self.ended.is_set():
            raise self._broken(known=True)

    def _broken(self, *, known: bool) -> Disconnected:
        rest = "nothing was done" if known else "it is not known what was done"
        return Disconnected(f"the connection to the server broke ({self.why}); {rest}",
                            outcome_known=known)  # fmt: skip


@asynccontextmanager
async def open_link(channel: Channel, hear: Hear, serve: Serve) -> AsyncGenerator[Link]:
    """Speak over a channel while the block runs; the channel is left for the caller to close.

    ``serve`` does what the server asks for, each request in a task of its own.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        link = Link(channel, hear, serve, nursery)
        nursery.start_soon(link.read)
        nursery.start_soon(link.write)
        nursery.start_soon(link.watch)
        try:
            yield link
        except Exception as error:  # raised below, bare: the nursery would wrap it
            failure = error
        finally:
            link.end("this client has closed it")
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
