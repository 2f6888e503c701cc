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
from vaala.models.proxy import proxy_for
from vaala_protocol.errors import BadRequest


class Clients:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}
        self._tls: ssl.SSLContext | None = None

    def of(self, url: str) -> httpx.AsyncHTTPTransport:
        """Return the transport for the origin of ``url``, made at its first use.

        Raises `BadRequest` for a URL, a proxy or a certificate file that is not usable.
        """
        origin = _origin(url)
        transport = self._transports.get(origin)
        if transport is None:
            transport = self._transports[origin] = self._open(origin)
        return transport

    async def aclose(self) -> None:
        """Close every transport and its idle connections."""
        transports, self._transports = self._transports, {}
        for transport in transports.values():
            await transport.aclose()

    def _open(self, origin: str) -> httpx.AsyncHTTPTransport:
        secure = origin.startswith("https:")
        try:
            return httpx.AsyncHTTPTransport(
                # The variables that count are those given, not those of this process.
                trust_env=False,
                proxy=proxy_for(origin, self._environ),
                # Without TLS an empty context saves the reading of 140 certificates.
                verify=self._tls_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                limits=httpx.Limits(
                    max_connections=CONNECTIONS_PER_ORIGIN_MAX,
                    max_keepalive_connections=CONNECTIONS_IDLE_PER_ORIGIN_MAX,
                    keepalive_expiry=CONNECTION_IDLE_S,
                ),
            )
        except (ValueError, ImportError, httpx.InvalidURL):
            # The proxy's URL may hold a password: it is not quoted.
            raise BadRequest(
                f"the proxy for {origin} is not usable: check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY"
            ) from None

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            file = self._environ.get("SSL_CERT_FILE") or None
            folder = self._environ.get("SSL_CERT_DIR") or None
            self._tls = _tls_context(file, folder)
        return self._tls


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
