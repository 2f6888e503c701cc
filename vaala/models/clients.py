"""Transports of httpx, one for each origin. Imported through `vaala.models.http` only.

A client of httpx would add redirects, cookies and authentication by challenge, of which nothing
is wanted, and a tenth to the cost of a request.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import httpx

from vaala.models.limits import (
    CONNECTION_IDLE_S,
    CONNECTIONS_IDLE_PER_ORIGIN_MAX,
    CONNECTIONS_PER_ORIGIN_MAX,
)
from vaala.models.provider import Route, Trust
from vaala.models.proxy import proxy_of
from vaala_protocol.errors import BadRequest


class Clients:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._transports: dict[tuple[str, Route], httpx.AsyncHTTPTransport] = {}
        self._tls: dict[tuple[str, Trust | None], ssl.SSLContext] = {}

    def of(self, url: str, route: Route) -> httpx.AsyncHTTPTransport:
        """Return the transport to the origin of ``url`` on a route, made at its first use.

        Raises `BadRequest` for a URL, a proxy or a certificate file that is not usable.
        """
        origin = _origin(url)
        transport = self._transports.get((origin, route))
        if transport is None:
            transport = self._transports[origin, route] = self._open(origin, route)
        return transport

    async def aclose(self) -> None:
        """Close every transport and its idle connections."""
        transports, self._transports = self._transports, {}
        for transport in transports.values():
            await transport.aclose()

    def _open(self, origin: str, route: Route) -> httpx.AsyncHTTPTransport:
        secure = origin.startswith("https:")
        try:
            proxy = self._proxy(origin, route)
            return httpx.AsyncHTTPTransport(
                # The variables that count are those given, not those of this process.
                trust_env=False,
                proxy=proxy,
                # Without TLS an empty context saves the reading of 140 certificates.
                verify=self._tls_context(route)
                if secure
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                limits=httpx.Limits(
                    max_connections=CONNECTIONS_PER_ORIGIN_MAX,
                    max_keepalive_connections=CONNECTIONS_IDLE_PER_ORIGIN_MAX,
                    keepalive_expiry=CONNECTION_IDLE_S,
                ),
            )
        except (ValueError, ImportError, httpx.InvalidURL):
            # The proxy's URL may hold a password: it is not quoted.
            place = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY"
            place = place if route.proxy is None else "proxy in providers.yaml"
            raise BadRequest(f"the proxy for {origin} is not usable: check {place}") from None

    def _proxy(self, origin: str, route: Route) -> httpx.Proxy | None:
        url = proxy_of(origin, route, self._environ)
        if url is None:
            return None
        secure = url.startswith("https:")
        return httpx.Proxy(url, ssl_context=self._tls_context(route) if secure else None)

    def _tls_context(self, route: Route) -> ssl.SSLContext:
        """Return what says whose certificates count; reading them takes some 20 ms."""
        which = (route.ca, route.trust)
        if which not in self._tls:
            self._tls[which] = self._made_context(route)
        return self._tls[which]

    def trusted(self, route: Route) -> str:
        """Return what says whose certificates count, where that is said; for people."""
        if route.ca_file:
            return f"ca_file {route.ca_file}"
        if route.trust is not None:
            return f"trust: {route.trust}"
        names = (name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if self._environ.get(name))
        return ", ".join(f"{name} {self._environ[name]}" for name in names)

    def _made_context(self, route: Route) -> ssl.SSLContext:
        if route.trust == "system":
            import truststore  # only where it is asked for

            context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if route.ca:
                context.load_verify_locations(cadata=route.ca)
            return context
        if route.ca:
            return ssl.create_default_context(cadata=route.ca)
        file = folder = None
        if route.trust is None:
            file = self._environ.get("SSL_CERT_FILE") or None
            folder = self._environ.get("SSL_CERT_DIR") or None
        return _tls_context(file, folder)


def _origin(url: str) -> str:
    with suppress(ValueError):  # a bracket without its other half, a port that is none
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return f"{parts.scheme}://{parts.netloc}"
    raise BadRequest(f"{url!r} is no URL of a server: write http(s)://host[:port]/path")


def _tls_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    if file is None and folder is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=file, capath=folder)
    except OSError as error:
        raise BadRequest(
            f"SSL_CERT_FILE={file or ''} SSL_CERT_DIR={folder or ''}: {error}; name a file with"
            " certificates in PEM form, or unset both"
        ) from error
