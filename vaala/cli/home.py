"""`Home`: where `vaala run` finds its conversation, and how it knows what will run there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from vaala.cli.connecting import tell_connection
from vaala.interface import Catalog, Conversation, Conversations
from vaala_protocol.methods.catalog import AgentGetParams, ModelResolveParams
from vaala_protocol.settings import Settings
from vaala_protocol.state import Snapshot

if TYPE_CHECKING:
    from vaala.client import Client


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
        """Return what a conversation runs with, its agent's settings below its own."""
        ...

    async def resolve(self, name: str | None) -> tuple[str, str]:
        """Return the model of a name, or the default, and one line that says why that one.

        The keys of this process count. Raises `BadRequest` that tells what was looked for and the
        ways out.
        """
        ...

    async def tell_connection(self, note: Callable[[str], None]) -> None:
        """Tell what becomes of the connection, until cancelled; nothing where there is none."""
        ...


class ServerHome:
    """The user's server."""

    def __init__(self, client: Client) -> None:
        self._client = client

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
        return root.settings.over(await self.agent(root.info.agent))

    async def resolve(self, name: str | None) -> tuple[str, str]:
        found = await self._client.ask(ModelResolveParams(name=name))
        return found.model, found.reason

    async def tell_connection(self, note: Callable[[str], None]) -> None:
        await tell_connection(self._client, note)
