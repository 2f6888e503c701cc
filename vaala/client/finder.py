"""`Finder`: leads to the server of a data directory, and starts it when there is none.

A record is believed when the server behind it proves that it knows the token. All else (no
record, a pid that is another program's now, a port of a stranger, one where nobody answers) means
that there is no server: within short deadlines, and then one is started under a lock.

Starting is done inside trio, not before: the same code serves a program that runs for weeks and
finds its server gone, it can be cancelled at any moment, and nothing is forked with threads around.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

import trio
from msgspec import Struct

from vaala.client import limits
from vaala.client.address import Address, parse_address
from vaala.client.errors import CannotConnect, CannotStart
from vaala.client.spawn import Started, start_server
from vaala.client.start_lock import hold_start_lock
from vaala.client.wire import Wire, open_wire
from vaala.discovery import NoRecord, Place, ServerRecord, is_owned, read_record


class Finder(Protocol):
    """A way to a server."""

    def wire(self, *, start: bool) -> AbstractAsyncContextManager[Wire]:
        """Open a wire to the server; ``start`` it when there is none and it can be started.

        Raises `CannotConnect`, `CannotStart`.
        """
        ...


class Direct(Struct, frozen=True):
    """A server whose address and token are known; it is never started."""

    address: Address
    token: str

    @asynccontextmanager
    async def wire(self, *, start: bool) -> AsyncGenerator[Wire]:
        async with open_wire(self.address, self.token) as wire:
            yield wire


class Discovery:
    """The server that owns a data directory, by its record."""

    def __init__(self, place: Place, environ: Mapping[str, str]) -> None:
        """``environ`` says what a server that is started inherits; see `vaala.client.spawn`."""
        self._place = place
        self._environ = environ
        self._started: Started | None = None

    @asynccontextmanager
    async def wire(self, *, start: bool) -> AsyncGenerator[Wire]:
        self._reap()
        async with AsyncExitStack() as stack:
            yield await self._find(stack, start)

    def release(self) -> None:
        """Take leave of a server that was started here: it goes on alone."""
        if self._started is not None:
            self._started.release()
            self._started = None

    async def _find(self, stack: AsyncExitStack, start: bool) -> Wire:
        found = await self._read()
        tried: ServerRecord | None = None
        if isinstance(found, ServerRecord):
            try:
                return await self._open(stack, found)
            except CannotConnect as error:
                tried, reason = found, str(error)
        else:
            reason = found.reason
        if not start:
            raise CannotConnect(
                f"no server runs for the data in {self._place.data} ({reason}); "
                "start one with `vaala serve`"
            )
        async with hold_start_lock(self._place.start_lock):
            return await self._find_or_start(stack, tried)

    async def _find_or_start(self, stack: AsyncExitStack, tried: ServerRecord | None) -> Wire:
        """Under the start lock: whoever held it before may have started a server.

        Somebody who owns the data may be a server that is only starting, that is ending, or that
        is very busy; so he is waited for before a start is tried, which tells who he is.
        """
        deadline = trio.current_time() + limits.OWNED_S
        while True:
            owned = await trio.to_thread.run_sync(is_owned, self._place.owner_lock)
            found = await self._read()
            if isinstance(found, ServerRecord) and (owned or found != tried):
                try:
                    return await self._open(stack, found, patient=owned)
                except CannotConnect:
                    tried = found  # of a run that has ended, or is about to
            if not owned or trio.current_time() > deadline:
                break
            await trio.sleep(limits.OWNED_POLL_S)
        self._started = await start_server(self._place, self._environ)
        found = await self._read()
        if isinstance(found, NoRecord):
            raise CannotStart(f"a server was started and left no record: {found.reason}")
        return await self._open(stack, found, patient=True)

    async def _open(
        self, stack: AsyncExitStack, record: ServerRecord, *, patient: bool = False
    ) -> Wire:
        """Open a wire to the first address of a record where its server is."""
        handshake_s = limits.PATIENT_HANDSHAKE_S if patient else limits.HANDSHAKE_S
        problems: list[str] = []
        for text in record.addresses:
            try:
                wire = open_wire(parse_address(text), record.token, handshake_s=handshake_s)
                return await stack.enter_async_context(wire)
            except (CannotConnect, ValueError) as error:
                problems.append(str(error))
        raise CannotConnect("; ".join(problems))

    async def _read(self) -> ServerRecord | NoRecord:
        return await trio.to_thread.run_sync(read_record, self._place.record, self._place.data)

    def _reap(self) -> None:
        if self._started is not None and self._started.reap() is not None:
            self._started = None
