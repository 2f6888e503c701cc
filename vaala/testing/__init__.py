"""Fakes for programs that are built on vaala, and for its own tests.

`ScriptedModel` plays a script without any network. `chat_server` is a model provider on loopback
that answers byte for byte as told; the helpers in `vaala.testing.provider_chat` write its replies.
`dropping_proxy` is a network that breaks when told.
"""

from vaala.models.scripted import ScriptedModel
from vaala.testing.dropping import DroppingProxy, dropping_proxy
from vaala.testing.models import FixedModels
from vaala.testing.provider import CUT, STALL, ChatServer, Reply, Request, chat_server

__all__ = [
    "CUT",
    "STALL",
    "ChatServer",
    "DroppingProxy",
    "FixedModels",
    "Reply",
    "Request",
    "ScriptedModel",
    "chat_server",
    "dropping_proxy",
]
