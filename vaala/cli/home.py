"""`Home`: where `vaala run` finds its conversation, and how it knows what will run there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from vaala.cli.exits import USAGE, CommandFailed
from vaala.discovery.environment import KEY_ORDER
from vaala.interface import Catalog, Conversation, Conversations
from vaala_protocol.errors import NotFound
from vaala_protocol.methods.catalog import AgentGetParams, ModelListParams
from vaala_protocol.settings import Settings
from vaala_protocol.state import Snapshot

if TYPE_CHECKING:
    from vaala.client import Client

FOREIGN = "conversation {} was copied or imported: say with --cwd in which directory it works here"


class Home(Protocol):
    """A runtime in this process, or the user's server."""

    @property
    def conversations(self) -> Conversations: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def shared(self) -> bool:
        """Conversations go on when this process ends."""
        ...

    async def agent(self, name: str) -> Settings:
        """Return the settings of an agent; raises `BadRequest` or `NotFound`."""
        ...

    async def settings(self, conversation: Conversation) -> Settings:
        """Return what a conversation runs with, its agent's settings below its own.

        Raises `CommandFailed` when nobody has said where it works here.
        """
        ...

    async def model_line(self, given: str | None, own: str | None, owner: str) -> str:
        """Say which model will run, and why.

        Raises `CommandFailed` and `BadRequest` when none can.
        """
        ...


class ServerHome:
    """The user's server. Models are named there: it says when a turn begins whether one is."""

    def __init__(self, client: Client, environ: Mapping[str, str] = os.environ) -> None:
        self._client = client
        self._environ = environ

    @property
    def conversations(self) -> Conversations:
        return self._client

    @property
    def catalog(self) -> Catalog:
        return self._client

    @property
    def shared(self) -> bool:
        return True

    async def agent(self, name: str) -> Settings:
        return (await self._client.ask(AgentGetParams(name=name))).settings

    async def settings(self, conversation: Conversation) -> Settings:
        async with conversation.subscribe() as updates:
            first = await updates.__anext__()
        assert isinstance(first, Snapshot), "a subscription begins with a snapshot"
        root = next(one for one in first.sessions if one.info.id == conversation.id)
        try:
            return root.settings.over(await self.agent(root.info.agent))
        except NotFound:  # the agent is gone from the configuration: the turn tells
            return root.settings

    async def model_line(self, given: str | None, own: str | None, owner: str) -> str:
        if given is not None:
            return f"model {given}: --model"
        if own is not None:
            return f"model {own}: {owner}"
        known = await self._client.ask(ModelListParams())
        if any(self._environ.get(name) for name in KEY_ORDER):
            # A key of ours may stand for another model than the server has by itself.
            return "model: chosen by the server, with the keys of this environment"
        if known.default is None:
            raise CommandFailed(known.reason, USAGE)
        return known.reason
