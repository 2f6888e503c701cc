"""What server.yaml says, ready for use."""

from __future__ import annotations

from msgspec import Struct


class ServerSettings(Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 8790
    """Where it listens; taken by another program: a free one. 0: always a free one."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in the Host header that are accepted beside those of this machine's loopback."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may connect, beside the server's own."""
    idle_exit_minutes: float = 30.0
    """When a server that a client started ends because nothing goes on; 0: never."""
