"""What a client says about the environment it runs in, and whose word counts."""

from __future__ import annotations

from pathlib import PurePosixPath

from vaala.checks import storable
from vaala.server import limits
from vaala.server.wire import PeerInfo
from vaala_protocol.errors import BadRequest
from vaala_protocol.methods.runtime import ClientEnvironment


def environment_given(peer: PeerInfo, given: ClientEnvironment) -> ClientEnvironment:
    """Return the environment of a client on this machine; raises `BadRequest` for any other.

    It names directories and variables of the client's machine: they mean nothing elsewhere, and
    commands would run with them.
    """
    if not peer.local:
        raise BadRequest(
            "an environment is taken from clients on the server's own machine only: leave it out"
        )
    storable(given, "the environment", limits.ENVIRONMENT_BYTES_MAX)
    if not PurePosixPath(given.directory).is_absolute():
        raise BadRequest(f"the directory {given.directory!r} is not absolute")
    for name in (*given.keys, *given.overlay):
        if not name or "=" in name or "\0" in name:
            raise BadRequest(f"{name!r} cannot be the name of a variable")
    for name, value in (*given.keys.items(), *given.overlay.items()):
        if value is not None and "\0" in value:
            raise BadRequest(f"the variable {name} holds a NUL byte")
    return given
