"""`Offers`: what one client does for conversations. All of it dies with the connection."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from vaala.conversation import Conversation
from vaala.runtime import Runtime
from vaala.server import limits
from vaala.server.api.served import offer_of
from vaala.server.asking import Asking
from vaala.services.base import Offer
from vaala_protocol.errors import NotFound, Overloaded
from vaala_protocol.ids import new_id
from vaala_protocol.methods.client import ClientOfferParams


class Offers:
    """At most one offer for each conversation; a later one takes the place of the one before.

    Each keeps its conversation open, so there are at most `limits.OFFERS_PER_CLIENT_MAX`.
    """

    def __init__(self, runtime: Runtime, asking: Asking) -> None:
        self._runtime = runtime
        self._asking = asking
        self._held: dict[str, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    @contextmanager
    def held(self) -> Generator[Offers]:
        """Hold the offers while the block runs; then all of them end, and calls in flight fail."""
        try:
            yield self
        finally:
            for held in self._held.values():
                held.end()
            self._held.clear()

    async def make(self, client: str, params: ClientOfferParams) -> str:
        """Offer services for a conversation; return the id of the offer.

        Raises `BadRequest` and `Overloaded` for what cannot be offered, `NotFound`, `Stopping`;
        then an earlier offer stands.
        """
        self._check_room(params.conversation_id)
        conversation = await self._runtime.conversation(params.conversation_id)
        self._check_room(params.conversation_id)  # others may have been made meanwhile
        held = _Held(offer_of(client, params, self._asking), conversation)
        before = self._held.get(params.conversation_id)
        self._held[params.conversation_id] = held
        if before is not None:
            before.end()
        return held.id

    def _check_room(self, conversation_id: str) -> None:
        if conversation_id not in self._held and len(self._held) >= limits.OFFERS_PER_CLIENT_MAX:
            raise Overloaded(
                f"this client serves {len(self._held)} conversations already: let it withdraw one "
                "of its offers"
            )

    def renew(self, conversation: Conversation) -> None:
        """Offer again to a conversation that was opened again since. Raises as `make`."""
        held = self._held.get(conversation.id)
        if held is not None and held.conversation is not conversation:
            held.move(conversation)

    def withdraw(self, offer_id: str) -> None:
        """Take an offer back; raises `NotFound` when it is none of this connection."""
        for conversation_id, held in self._held.items():
            if held.id == offer_id:
                del self._held[conversation_id]
                return held.end()
        raise NotFound(f"this connection has no offer {offer_id}; a later one may have replaced it")


class _Held:
    """An offer, and the opening of the conversation that it was made to."""

    def __init__(self, offer: Offer, conversation: Conversation) -> None:
        self.id = new_id()
        self.conversation = conversation
        self._offer = offer
        self._stack = ExitStack()
        self._stack.enter_context(conversation.services.offer(offer))

    def move(self, conversation: Conversation) -> None:
        """Offer it to another opening. When that raises, it stands nowhere."""
        self._stack.close()
        self._stack.enter_context(conversation.services.offer(self._offer))
        self.conversation = conversation

    def end(self) -> None:
        self._stack.close()
