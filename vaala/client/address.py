"""Addresses of a server: ``127.0.0.1:8790``, ``[::1]:8790``, ``ws://...`` or ``unix:/a/socket``."""

from __future__ import annotations

import socket
from typing import TypeAlias

import trio
from msgspec import Struct


class Tcp(Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Unix(Struct, frozen=True):
    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


Address: TypeAlias = Tcp | Unix


def parse_address(text: str) -> Address:
    """Return the address that a text names; raises ``ValueError``."""
    if text.startswith("unix:"):
        if path := text.removeprefix("unix:"):
            return Unix(path)
        raise ValueError(f"{text!r} names no socket")
    place = text.removeprefix("ws://").partition("/")[0]
    host, _, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"{text!r} is no address: write host:port or unix:/path/of/the/socket")
    return Tcp(host, int(port))


async def open_stream(address: Address) -> trio.SocketStream:
    """Connect; raises ``OSError``."""
    match address:
        case Tcp(host=host, port=port):
            return await trio.open_tcp_stream(host, port)
        case Unix(path=path):
            return await trio.open_unix_socket(path)


def is_near(stream: trio.SocketStream) -> bool:
    """Tell whether a connection stays on this machine, by what its server goes by, too."""
    if stream.socket.family == socket.AF_UNIX:
        return True
    try:
        host: str = stream.socket.getpeername()[0]
    except OSError:  # it has ended already
        return False
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")
