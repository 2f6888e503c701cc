"""`Finder`: leads to the server of a data directory, and starts it when there is none.

A record is believed when somebody owns the data directory and the server behind the record proves
that it knows the token. All else (no record, a pid that is another program's now, a port of a
stranger, one where nobody answers) means that there is no server: within short deadlines, and then
one is started under a lock. Whoever owns the data is waited for before that: it may be a server
that only begins, that is just ending or that is very busy.

Starting is done inside trio, not before: the same code serves a program that runs for weeks and
finds its server gone, it can be cancelled at any moment, and nothing is forked with threads around.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

import trio
from msgspec import Struct

from vaala.client import limits
from vaala.client.address import Address, parse_address
from vaala.client.channel import Channel, open_channel
from vaala.client.errors import CannotConnect, CannotStart, NoAnswer
from vaala.client.spawn import Started, start_server
from vaala.client.start_lock import hold_start_lock
from vaala.discovery import NoRecord, Place, ServerRecord, is_owned, owner_pid, read_record


class Finder(Protocol):
    """A way to a server."""

    def channel(self, *, start: bool) -> AbstractAsyncContextManager[Channel]:
        """Open a channel to the server; ``start`` it when there is none and it can be started.

        Raises `CannotConnect`, `CannotStart`.
        """
        ...


class Direct(Struct, frozen=True):
    """A server whose address and token are known; it is never started."""

    address: Address
    token: str

    @asynccontextmanager
    async def channel(self, *, start: bool) -> AsyncGenerator[Channel]:
        async with open_channel(self.address, self.token) as channel:
            yield channel


class _Sight(Struct, frozen=True):
    """What there is to see of a server at one moment."""

    found: ServerRecord | NoRecord
    owned: bool
    """Somebody owns the data directory: a server has done so since before it left its record."""
    owner: int | None
    """The process that says so in the lock."""


class Discovery:
    """The server that owns a data directory, by its record."""

    def __init__(
        self,
        place: Place,
        environ: Mapping[str, str],
        on_notice: Callable[[str], None],
        *,
        owned_s: float = limits.OWNED_S,
    ) -> None:
        """``environ`` says what a server that is started inherits; see `vaala.client.spawn`.

        ``on_notice`` gets a line for the person when another owner is waited for, which is done
        for ``owned_s`` at most.
        """
        self._place = place
        self._environ = environ
        self._on_notice = on_notice
        self._owned_s = owned_s
        self._started: Started | None = None

    @asynccontextmanager
    async def channel(self, *, start: bool) -> AsyncGenerator[Channel]:
        self._reap()
        async with AsyncExitStack() as stack:
            yield await self._find(stack, start)

    def release(self) -> None:
        """Take leave of a server that was started here: it goes on alone."""
        if self._started is not None:
            self._started.release()
            self._started = None

    async def _find(self, stack: AsyncExitStack, start: bool) -> Channel:
        try:
            return await self._open(stack, await self._look())
        except CannotConnect as error:
            if not start and isinstance(error, NoAnswer):
                raise
            if not start:
                raise CannotConnect(
                    f"no server runs for the data in {self._place.data} ({error}); "
                    "start one with `vaala serve`"
                ) from error
        deadline = trio.current_time() + self._owned_s
        while True:
            # Before the lock is taken: other clients need not wait for each other here.
            channel = await self._wait_for_owner(stack, deadline)
            if channel is None:
                async with hold_start_lock(self._place.start_lock):
                    channel = await self._start(stack, deadline)
            if channel is not None:
                return channel

    async def _wait_for_owner(self, stack: AsyncExitStack, deadline: float) -> Channel | None:
        """Wait while somebody owns the data, at most until ``deadline``.

        Returns the channel to the server that he turns out to be; raises `NoAnswer` when he is one
        that says nothing.
        """
        silent: NoAnswer | None = None
        said_at = trio.current_time() + limits.OWNED_QUIET_S
        while (sight := await self._look()).owned:
            if isinstance(sight.found, ServerRecord):
                try:
                    left_s = max(deadline - trio.current_time(), limits.HANDSHAKE_S)
                    return await self._open(stack, sight, patience_s=left_s)
                except NoAnswer as error:
                    silent = error
                except CannotConnect:
                    silent = None  # of a run that has ended, or is about to
            now = trio.current_time()
            if now >= deadline and silent is not None:
                raise silent
            if now >= deadline:
                break
            if now >= said_at:
                said_at = deadline
                self._on_notice(
                    f"another process owns the data in {self._place.data}, perhaps a server that "
                    f"is just ending: waiting for it, at most {deadline - now:.0f} s more"
                )
            await trio.sleep(limits.OWNED_POLL_S)
        return None

    async def _start(self, stack: AsyncExitStack, deadline: float) -> Channel | None:
        """Under the start lock: whoever held it before may have started a server.

        Raises `CannotStart`, which names the owner when there is one after ``deadline``. Before
        that an owner who came in between is no failure: then returns None.
        """
        channel = await self._wait_for_owner(stack, deadline)
        if channel is not None:
            return channel
        try:
            self._started = await start_server(self._place, self._environ)
        except CannotStart as error:
            if error.locked and trio.current_time() < deadline:
                return None
            raise
        sight = await self._look()
        if isinstance(sight.found, NoRecord):
            raise CannotStart(f"a server was started and left no record: {sight.found.reason}")
        return await self._open(stack, sight, patience_s=limits.PATIENT_HANDSHAKE_S)

    async def _open(
        self, stack: AsyncExitStack, sight: _Sight, *, patience_s: float | None = None
    ) -> Channel:
        """Open a channel to the first address of a record where its server is.

        Nobody is spoken to when nobody owns the data: its server is gone then, and who listens in
        its place is a stranger.
        """
        record = sight.found
        if isinstance(record, NoRecord):
            raise CannotConnect(record.reason)
        if not sight.owned:
            raise CannotConnect(f"the one of {', '.join(record.addresses)} has ended")
        handshake_s = limits.HANDSHAKE_S
        if patience_s is not None:  # it is known that a server runs
            handshake_s = min(patience_s, limits.PATIENT_HANDSHAKE_S)
        problems: list[Exception] = []
        for text in record.addresses:
            try:
                channel = open_channel(parse_address(text), record.token, handshake_s=handshake_s)
                return await stack.enter_async_context(channel)
            except (CannotConnect, ValueError) as error:
                problems.append(error)
        found = "; ".join(map(str, problems))
        if sight.owner == record.pid and any(isinstance(one, NoAnswer) for one in problems):
            raise NoAnswer(
                f"the server does not answer: process {record.pid} has the data in "
                f"{self._place.data}, and {found}; wait, or end that process"
            )
        raise CannotConnect(found)

    async def _look(self) -> _Sight:
        return await trio.to_thread.run_sync(_look, self._place)

    def _reap(self) -> None:
        if self._started is not None and self._started.reap() is not None:
            self._started = None


def _look(place: Place) -> _Sight:
    return _Sight(
        read_record(place.record, place.data),
        is_owned(place.owner_lock),
        owner_pid(place.owner_lock),
    )
