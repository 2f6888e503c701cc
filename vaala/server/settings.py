"""`ServeSettings`: how one run of the server was asked for."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class ServeSettings(Struct, frozen=True):
    """None means what server.yaml says, or its default."""

    data: Path
    hosts: tuple[str, ...] | None = None
    """Numeric addresses to listen on; empty: no port at all."""
    port: int | None = None
    """Exactly this one; 0: any that is free. None: the usual one, or a free one."""
    socket: Path | None = None
    """A unix socket to listen on as well."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in the Host header that mean this server, besides those of server.yaml."""
    allowed_origins: tuple[str, ...] = ()
    idle_exit_minutes: float | None = None
    """0: never ends by itself."""
    auto_started: bool = False
    """A client started it for itself: unless told otherwise it ends when it is idle for long."""
