"""Which proxy a server is reached through: the usual variables, and never one for loopback."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from vaala.models.provider import Route


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy's URL for requests to ``url``, or None for a direct connection.

    ``HTTPS_PROXY`` or ``HTTP_PROXY`` by the scheme, else ``ALL_PROXY``; lower case goes first, as
    in curl. ``NO_PROXY`` lists hosts, domains (with all below them), addresses, networks
    ("10.0.0.0/8") and "*", each with an optional port.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower().rstrip(".")
    if is_loopback(host):
        return None
    proxy = _variable(environ, f"{parts.scheme}_proxy") or _variable(environ, "all_proxy")
    if not proxy or _is_exempt(host, parts.port, _variable(environ, "no_proxy")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def proxy_of(url: str, route: Route, environ: Mapping[str, str]) -> str | None:
    """Return the proxy's URL for requests to ``url`` on a route; None: there is none.

    What the route says goes before the environment, ``NO_PROXY`` included; to loopback there is
    none in any case.
    """
    if route.proxy is None:
        return proxy_for(url, environ)
    return None if is_loopback(urlsplit(url).hostname or "") else route.proxy.reveal() or None


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _is_exempt(host: str, port: int | None, exemptions: str) -> bool:
    for entry in exemptions.lower().replace(",", " ").split():
        if entry == "*" or _matches(host, port, entry):
            return True
    return False


def _matches(host: str, port: int | None, entry: str) -> bool:
    if "/" in entry:
        address = _address(host)
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isdigit() and (":" not in name or name.endswith("]")):
        if int(digits) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").lstrip(".")
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
