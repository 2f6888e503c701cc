"""Which clients a server serves: those of its major version of the protocol.

A server that a client started, and that has nothing to do, gives way to a newer client: it ends,
and the client starts its own. A busy one serves it, and says so once.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from vaala_protocol.methods.runtime import InitializeParams, ServerInfo

Verdict: TypeAlias = Literal["serve", "notice", "yield", "refuse"]

_RELEASE = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,3}")


def judge(server: ServerInfo, params: InitializeParams, *, idle: bool) -> Verdict:
    """Tell what to do about a client.

    Only the version of vaala's own client library compares with the server's: the name and version
    of a client are those of the program that uses it.
    """
    newer = version(params.client.library) > version(server.version)
    if newer and server.auto_started and idle:
        return "yield"
    if _major(params.protocol) != _major(server.protocol):
        return "refuse"
    return "notice" if newer else "serve"


def mismatch(server: ServerInfo, params: InitializeParams) -> str:
    """Say what does not fit, and the way out."""
    return (
        f"the server (vaala {server.version}) speaks version {server.protocol} of the protocol and "
        f"the client {params.client.name} {params.client.version} version {params.protocol}: "
        "upgrade the older one, then `vaala restart`"
    )


def version(text: str) -> tuple[int, ...]:
    """Return the release of a version in a form that compares; empty for what is none.

    A release and what led to it (``1.0rc2``, ``1.0.dev3``) count as the same.
    """
    found = _RELEASE.match(text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _major(protocol: str) -> str:
    return protocol.partition(".")[0]
