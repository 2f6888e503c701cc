"""`Offering`: tells the server what this program offers, anew on each connection.

Offers are made in tasks of the client and not of the block that holds one: an answer that comes
when the block has ended finds somebody, who takes the offer back.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import trio

from vaala.client import limits
from vaala.client.errors import Disconnected
from vaala.client.link import Link
from vaala.client.offers import OwnOffer, OwnOffers
from vaala.client.terminals import end_terminals
from vaala_protocol.base import Malformed
from vaala_protocol.errors import Refused
from vaala_protocol.methods.client import ClientOfferResult, ClientWithdrawParams

log = logging.getLogger(__name__)


class _Held:
    """An offer, while a block holds it and for as long as it is being made."""

    __slots__ = ("accepted", "failure", "offer", "settled", "wanted")

    def __init__(self, offer: OwnOffer) -> None:
        self.offer = offer
        self.wanted = True
        """The block that holds it runs."""
        self.settled = trio.Event()
        """The server has accepted it once, or ``failure`` says why it never will."""
        self.failure: Exception | None = None
        self.accepted: tuple[Link, str] | None = None
        """Where it stands now, and the id that the server has given it there."""


class Offering:
    def __init__(
        self, offers: OwnOffers, link: Callable[[], Awaitable[Link]], nursery: trio.Nursery
    ) -> None:
        self._offers = offers
        self._link = link
        self._nursery = nursery
        self._held: dict[str, _Held] = {}
        """By conversation."""

    @asynccontextmanager
    async def hold(self, offer: OwnOffer) -> AsyncGenerator[None]:
        """Offer while the block runs. Raises ``ValueError``, `Refused`, `Disconnected`.

        On leaving, its terminals are ended.
        """
        self._offers.add(offer)
        held = self._held[offer.conversation_id] = _Held(offer)
        try:
            self._nursery.start_soon(self._begin, held)
            await held.settled.wait()
            if held.failure is not None:
                raise held.failure
            yield
        finally:
            held.wanted = False
            del self._held[offer.conversation_id]
            terminals = self._offers.remove(offer)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + limits.CLOSE_S):
                await self._take_back(held)
            await end_terminals(terminals)

    def renew(self, link: Link) -> None:
        """Make all offers anew on a connection that has begun."""
        for held in self._held.values():
            if held.settled.is_set() and held.failure is None:
                self._nursery.start_soon(self._make_again, link, held)

    def disconnected(self) -> None:
        """A connection has ended; the server cannot end the terminals that it has started."""
        if terminals := self._offers.disconnected():
            self._nursery.start_soon(end_terminals, terminals)

    async def _begin(self, held: _Held) -> None:
        """Make an offer for the first time, over as many connections as that takes."""
        try:
            while held.wanted and not held.settled.is_set():
                link = await self._link()
                with suppress(Disconnected):  # the next connection will do
                    await self._make(link, held)
        except (Disconnected, Refused, Malformed) as error:
            held.failure = error
            held.settled.set()

    async def _make_again(self, link: Link, held: _Held) -> None:
        try:
            await self._make(link, held)
        except Disconnected:
            pass  # the next connection makes it
        except (Refused, Malformed) as error:
            log.warning("the offer for %s does not stand any more: %s",
                        held.offer.conversation_id, error)  # fmt: skip

    async def _make(self, link: Link, held: _Held) -> None:
        def accept(made: ClientOfferResult) -> None:
            held.accepted = link, made.offer_id
            held.settled.set()

        if not held.wanted:
            return
        held.accepted = None
        await link.ask(held.offer.params(), accept)
        if not held.wanted:  # not any more, since it was asked for
            await self._take_back(held)

    async def _take_back(self, held: _Held) -> None:
        """Take an offer back where it stands; the end of a connection has done that before."""
        if held.accepted is None:
            return
        (link, offer_id), held.accepted = held.accepted, None
        with suppress(Disconnected, Refused, Malformed):
            await link.ask(ClientWithdrawParams(offer_id=offer_id))
