"""`Table`: actors opened on demand, one for each key, each behind a fence.

Looking an open actor up is synchronous. Opening runs in a task of its own: a caller that goes away
does not undo it, and callers that come meanwhile wait for the same opening. An actor that is on
its way out is waited for, then opened anew. An exception inside an actor, its opening and closing
included, ends that actor alone: it is logged with its traceback and given to ``crashed``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from copy import copy
from typing import Generic, TypeVar

import trio

from vaala.actor import Actor
from vaala_protocol.errors import Refused, Stopping

A = TypeVar("A", bound=Actor)
log = logging.getLogger(__name__)


class _Slot(Generic[A]):
    """One opening of an actor: settled once it is open, or is not going to be."""

    __slots__ = ("actor", "ended", "failure", "settled")

    def __init__(self) -> None:
        self.actor: A | None = None
        self.failure: Refused | None = None
        self.settled = trio.Event()
        self.ended = trio.Event()

    def open(self, actor: A) -> None:
        self.actor = actor
        self.settled.set()

    def fail(self, failure: Refused) -> None:
        """Tell those who wait for the opening; nothing when it has succeeded or failed before."""
        if not self.settled.is_set():
            self.failure = failure
            self.settled.set()


class Table(Generic[A]):
    """``make(key)`` opens an actor: what it raises of kind `Refused` is the caller's answer."""

    def __init__(
        self,
        nursery: trio.Nursery,
        make: Callable[[str], AbstractAsyncContextManager[A]],
        crashed: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self._nursery = nursery
        self._make = make
        self._crashed = crashed
        self._slots: dict[str, _Slot[A]] = {}

    def find(self, key: str) -> A | None:
        """Return the actor when it is open and not on its way out."""
        slot = self._slots.get(key)
        if slot is None or slot.actor is None or slot.actor.stopping:
            return None
        return slot.actor

    def __iter__(self) -> Iterator[A]:
        """Yield the open actors; the table may change meanwhile."""
        return iter([slot.actor for slot in self._slots.values() if slot.actor is not None])

    def __len__(self) -> int:
        return len(self._slots)

    async def get(self, key: str) -> A:
        """Return the actor, opened when it is not. Raises `Refused`, `Stopping` on a crash.

        Cancel: an opening that has begun goes on.
        """
        while True:
            slot = self._slots.get(key) or self._begin(key)
            await slot.settled.wait()
            if slot.failure is not None:
                # A copy for each caller: one exception raised many times mixes up its tracebacks.
                raise copy(slot.failure)
            assert slot.actor is not None
            if not slot.actor.stopping:
                return slot.actor
            await slot.ended.wait()

    async def close(self, key: str) -> None:
        """Stop an actor and wait until it has ended; nothing when it is not open."""
        slot = self._slots.get(key)
        if slot is None:
            return
        await slot.settled.wait()
        if slot.actor is not None:
            slot.actor.stop()
        await slot.ended.wait()

    def _begin(self, key: str) -> _Slot[A]:
        slot: _Slot[A] = _Slot()
        try:
            self._nursery.start_soon(self._run, key, slot)
        except RuntimeError as error:  # the nursery has ended, and this table with it
            raise Stopping(f"{key}: what it belongs to has ended") from error
        self._slots[key] = slot
        return slot

    async def _run(self, key: str, slot: _Slot[A]) -> None:
        try:
            async with self._make(key) as actor:
                await actor.serve(lambda: slot.open(actor))
        except* Exception as group:
            self._contain(key, slot, group)
        finally:
            slot.fail(Stopping(f"{key}: the runtime is closing"))
            del self._slots[key]
            slot.ended.set()

    def _contain(self, key: str, slot: _Slot[A], group: ExceptionGroup[Exception]) -> None:
        _, crash = group.split(Refused)
        cause = _first(crash or group)
        if slot.actor is None and isinstance(cause, Refused):
            slot.fail(cause)
            return
        what = "crashed; it reopens from its log" if slot.actor else "could not be opened"
        log.error("%s %s", key, what, exc_info=group)
        slot.fail(Stopping(f"{key}: {what}: {type(cause).__name__}: {cause}"))
        if self._crashed is not None:
            self._crashed(key, cause)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Return the first real error in nested groups."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
