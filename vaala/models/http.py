"""The one seam to HTTP. What is behind it, httpx, is imported when a model is first called: it
costs a fifth of a second, and most starts of the program need none of it.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from vaala.models.base import Deadlines
from vaala.models.failures import Origin, failure_of_kind
from vaala.package import Package
from vaala_protocol.errors import BadRequest

if TYPE_CHECKING:
    from vaala.models.clients import Clients
    from vaala.models.exchange import Answer


BEHIND_THE_SEAM = ("vaala.models.exchange", "vaala.models.clients")


class Call(Struct, frozen=True):
    """A request to make: ``body`` None is a GET."""

    url: str
    headers: Mapping[str, str]
    body: bytes | None
    deadlines: Deadlines
    origin: Origin


class Http:
    """The HTTP clients of a set of models; made by `open_http`."""

    def __init__(self, environ: Mapping[str, str], package: Package) -> None:
        self.package = package
        """Asked before a part of models is imported."""
        self._environ = environ
        self._clients: Clients | None = None

    @asynccontextmanager
    async def exchange(self, call: Call) -> AsyncGenerator[Answer]:
        """Send a request; the body of the context has the answer. Leaving closes what is unread.

        Raises `ModelFailure` when there is no answer, also for a URL, a proxy or a certificate file
        that is not usable. Cancel: the connection is closed at once.
        """
        clients = await self.load()
        from vaala.models.exchange import exchange

        try:
            transport = clients.of(call.url)
        except BadRequest as error:
            raise failure_of_kind(call.origin, "invalid_request", str(error)) from error
        async with exchange(transport, call) as answer:
            yield answer

    async def aclose(self) -> None:
        """Close every client and its idle connections."""
        if self._clients is not None:
            await self._clients.aclose()

    async def load(self) -> Clients:
        """Import what is behind the seam; for callers whose deadline must not cover that.

        Raises `Upgraded` when it would come from another version of vaala.
        """
        if self._clients is None:
            self.package.check(*BEHIND_THE_SEAM)
            # In a thread: an import that held up the loop would stall every other session.
            await trio.to_thread.run_sync(importlib.import_module, "vaala.models.exchange")
            from vaala.models.clients import Clients

            if self._clients is None:
                self._clients = Clients(self._environ)
        return self._clients


@asynccontextmanager
async def open_http(
    environ: Mapping[str, str], package: Package | None = None
) -> AsyncGenerator[Http]:
    """Hold the clients; leaving closes them, also when it is left by a cancel.

    ``environ`` gives the proxy variables and SSL_CERT_FILE, SSL_CERT_DIR. ``package`` notices an
    upgrade under this process.
    """
    http = Http(environ, package or Package())
    try:
        yield http
    finally:
        with trio.CancelScope(shield=True):
            await http.aclose()
