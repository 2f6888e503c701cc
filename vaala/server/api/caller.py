"""`Caller`: the client that a request came from, as the methods see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from vaala.discovery.environment import KEY_ORDER, KEY_VARIABLES
from vaala.models.catalogue.facts import Known
from vaala.models.secret import Secret
from vaala.server.api.api import Api
from vaala.server.api.offers import Offers
from vaala.server.api.surroundings import environment_given
from vaala.server.api.watches import Watches
from vaala.server.wire import PeerInfo
from vaala_protocol.base import Value
from vaala_protocol.methods.runtime import ClientEnvironment, ClientInfo

_URLS = frozenset(KEY_ORDER) - frozenset(KEY_VARIABLES)
"""Variables of providers that hold no secret."""


class Caller:
    """Lives as long as the connection."""

    def __init__(self, api: Api, peer: PeerInfo, watches: Watches, offers: Offers) -> None:
        self.api = api
        self.peer = peer
        self.watches = watches
        self.offers = offers
        self.client: ClientInfo | None = None
        """None before `runtime/initialize`."""
        self.environment: ClientEnvironment | None = None

    def __str__(self) -> str:
        return f"{self.name or 'a client'} at {self.peer.address}"

    @property
    def name(self) -> str:
        return self.client.name if self.client is not None else ""

    @property
    def keys(self) -> Mapping[str, str]:
        """Variables of providers that this client has told."""
        return {} if self.environment is None else self.environment.keys

    def known(self, model: str) -> Known:
        """Return what is known of a model, with the keys that this client has."""
        return self.api.config.known(model, self.keys)

    def runs_in(self, given: ClientEnvironment) -> None:
        """Take an environment in place of what the client told before.

        Raises `BadRequest` for one that cannot be taken. No log shows its keys from now on.
        """
        self.environment = environment_given(self.peer, given)
        self.api.learn(
            Secret(value) for name, value in self.environment.keys.items() if name not in _URLS
        )

    async def prepare(self, conversation_id: str) -> None:
        """Let a conversation know what its next turn has of this client: what the client offers,
        also when the conversation was opened again since, and the environment it runs in.

        Raises `NotFound`, `Stopping`.
        """
        conversation = await self.api.runtime.conversation(conversation_id)
        self.offers.renew(conversation)
        if self.environment is not None:
            conversation.environment.adopt(self.environment)


class Opened(Struct, frozen=True):
    """The answer to a wish to watch, and what begins behind it."""

    result: Value
    begin: Callable[[], None]
    """Called at once when the answer stands in the outbox: nothing comes before the answer."""
