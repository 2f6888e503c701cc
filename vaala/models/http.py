"""The one seam to HTTP. What is behind it, httpx, is imported when a model is first called: it
costs a fifth of a second, and most starts of the program need none of it.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import Struct
from msgspec.structs import replace

from vaala.models.auth import key_header, with_query
from vaala.models.base import Deadlines
from vaala.models.failures import Origin, failure_of_kind
from vaala.models.keys.late import LateKeys, Learn
from vaala.models.keys.source import NoKey
from vaala.models.limiter import Limiters
from vaala.models.limits import ERROR_BODY_BYTES_MAX
from vaala.models.provider import Provider, Route
from vaala.models.secret import Secret
from vaala.package import Package
from vaala_protocol.errors import BadRequest

if TYPE_CHECKING:
    from vaala.models.clients import Clients
    from vaala.models.exchange import Answer


BEHIND_THE_SEAM = ("vaala.models.exchange", "vaala.models.clients")


class Call(Struct, frozen=True):
    """A request to make: ``body`` None is a GET.

    The ``provider`` adds a key that is asked for late, parameters of the URL, and its route.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes | None
    deadlines: Deadlines
    origin: Origin
    provider: Provider | None = None
    trusted: str = ""
    """The file whose certificates count, or whose they are, where somebody has said that."""

    @property
    def route(self) -> Route:
        return Route() if self.provider is None else self.provider.route


_KEY_REFUSED = (401, 403)
"""Statuses after which the source of a late key is asked once more."""


def ignore(_: Iterable[Secret]) -> None:
    pass


class Http:
    """The HTTP clients of a set of models; made by `open_http`."""

    def __init__(self, environ: Mapping[str, str], package: Package, learn: Learn = ignore) -> None:
        self.package = package
        """Asked before a part of models is imported."""
        self.limiters = Limiters()
        """Here, since the connections outlive every set of models that a configuration gives."""
        self._environ = environ
        self._keys = LateKeys(environ, learn)
        self._clients: Clients | None = None

    @asynccontextmanager
    async def exchange(self, call: Call) -> AsyncGenerator[Answer]:
        """Send a request; the body of the context has the answer. Leaving closes what is unread.

        A late key that the server refuses is asked for once more, and the request repeated when
        it is another one. Raises `ModelFailure` when there is no answer, also when there is no
        key, or for a URL, a proxy or a certificate file that is not usable. Cancel: the connection
        is closed at once, and a command that gets a key is killed.
        """
        late = call.origin.late_key
        if late is None or call.provider is None:
            async with self._exchange(call) as answer:
                yield answer
            return
        key = await _had(call, late.get)
        async with self._exchange(_with_key(call, call.provider, key)) as answer:
            if answer.status not in _KEY_REFUSED:
                yield answer
                return
            await answer.keep(ERROR_BODY_BYTES_MAX)  # before the time that asking may take
            newer = await _had(call, partial(late.renewed, key))
            if newer == key:
                yield answer
                return
        async with self._exchange(_with_key(call, call.provider, newer)) as answer:
            yield answer

    @asynccontextmanager
    async def _exchange(self, call: Call) -> AsyncGenerator[Answer]:
        clients = await self.load()
        from vaala.models.exchange import exchange

        try:
            transport = clients.of(call.url, call.route)
        except BadRequest as error:
            raise failure_of_kind(call.origin, "invalid_request", str(error)) from error
        url = call.url if call.provider is None else with_query(call.provider, call.url)
        call = replace(call, url=url, trusted=clients.trusted(call.route))
        async with exchange(transport, call) as answer:
            yield answer

    def origin(self, provider: Provider) -> Origin:
        """Return who answers for a provider. Its late key is the same for all who ask here."""
        source = provider.key_source
        return Origin(
            provider.name,
            provider.secrets,
            provider.url_from,
            provider.key_from,
            None if source is None else self._keys.of(source),
        )

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


async def _had(call: Call, get: Callable[[], Awaitable[Secret]]) -> Secret:
    try:
        return await get()
    except NoKey as error:
        raise failure_of_kind(call.origin, "auth", str(error)) from None


def _with_key(call: Call, provider: Provider, key: Secret) -> Call:
    """Return the call with its key; a header of the configuration goes before it."""
    return replace(call, headers={**key_header(provider, key), **call.headers})


@asynccontextmanager
async def open_http(
    environ: Mapping[str, str], package: Package | None = None, learn: Learn = ignore
) -> AsyncGenerator[Http]:
    """Hold the clients; leaving closes them, also when it is left by a cancel.

    ``environ`` gives the proxy variables and SSL_CERT_FILE, SSL_CERT_DIR, and is that of commands
    which get a key. ``package`` notices an upgrade under this process. ``learn`` is told each key
    that was asked for late, so that no log shows it.
    """
    http = Http(environ, package or Package(), learn)
    try:
        yield http
    finally:
        with trio.CancelScope(shield=True):
            await http.aclose()
