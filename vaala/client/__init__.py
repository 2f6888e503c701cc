"""A trio client of the server: typed methods, and subscriptions that outlive a connection.

    async with connect() as client:
        conversation = await client.create_conversation(directory=".")
        result = await conversation.run("What is in this directory?")

Importing this package is cheap: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vaala.client.client import Client
    from vaala.client.connection import connect
    from vaala.client.conversation import RemoteConversation
    from vaala.client.errors import CannotConnect, CannotStart, ClientError, Disconnected
    from vaala.client.offers import ClientTool, Files
    from vaala.client.reader import Reader
    from vaala.client.terminals import Terminals

_HOMES = {
    "CannotConnect": "vaala.client.errors",
    "CannotStart": "vaala.client.errors",
    "Client": "vaala.client.client",
    "ClientError": "vaala.client.errors",
    "ClientTool": "vaala.client.offers",
    "Disconnected": "vaala.client.errors",
    "Files": "vaala.client.offers",
    "Reader": "vaala.client.reader",
    "RemoteConversation": "vaala.client.conversation",
    "Terminals": "vaala.client.terminals",
    "connect": "vaala.client.connection",
}

__all__ = [
    "CannotConnect",
    "CannotStart",
    "Client",
    "ClientError",
    "ClientTool",
    "Disconnected",
    "Files",
    "Reader",
    "RemoteConversation",
    "Terminals",
    "connect",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vaala.client' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
