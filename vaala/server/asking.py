"""`Asking`: what the server asks of one client, over the client's own connection."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio

from vaala.server.outbox import Outbox
from vaala_protocol.errors import Refused, Stopping
from vaala_protocol.methods.base import Request
from vaala_protocol.methods.client import ClientCancelNotification
from vaala_protocol.rpc import Answer, Peer

R = TypeVar("R")


class Asking:
    """Bounded by `vaala_protocol.limits.REQUESTS_MAX`; everything ends with the connection."""

    def __init__(self, peer: Peer, outbox: Outbox) -> None:
        self._peer = peer
        self._outbox = outbox
        self._waiting: dict[int, _Slot] = {}
        self._closed = False

    async def ask(self, params: Request[R]) -> R:
        """Ask the client and return its answer, for as long as it takes.

        Raises the `Refused` that the client answered with, `Overloaded` when it has too much to
        do already, `Stopping` when the connection has ended, and `vaala_protocol.base.Malformed`
        for an answer of another shape. Cancel: the client is told that the answer is not wanted.
        """
        await self._outbox.room()
        if self._closed:
            raise _gone(params)
        id, message = self._peer.ask(params)
        slot = self._waiting[id] = _Slot()
        self._outbox.put(message)
        try:
            await slot.settled.wait()
        finally:
            self._give_up(id)
        if slot.answer is None:
            raise _gone(params)
        if slot.answer.error is not None:
            raise slot.answer.error
        result: R = slot.answer.result
        return result

    def answered(self, answer: Answer) -> None:
        """Take what the client has answered."""
        if (slot := self._waiting.pop(answer.id, None)) is not None:
            slot.answer = answer
            slot.settled.set()

    @contextmanager
    def open(self) -> Generator[None]:
        """Ask while the block runs. At its end whoever waits is told, and nothing is asked any
        more."""
        try:
            yield
        finally:
            self._closed = True
            for slot in self._waiting.values():
                slot.settled.set()
            self._waiting.clear()

    def _give_up(self, id: int) -> None:
        """Tell the client that an answer that has not come is not wanted."""
        if self._waiting.pop(id, None) is not None:
            self._peer.forget(id)
            self._outbox.put(self._peer.tell(ClientCancelNotification(request_id=id)))


class _Slot:
    __slots__ = ("answer", "settled")

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.settled = trio.Event()


def _gone(params: Request[Any]) -> Refused:
    return Stopping(f"{params.method}: the client has gone")
