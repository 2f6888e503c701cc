"""`Offering`: tells the server what this program offers, anew on each connection."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import trio

from vaala.client import limits
from vaala.client.errors import Disconnected
from vaala.client.link import Link
from vaala.client.offers import Offer, Offers
from vaala_protocol.base import Malformed
from vaala_protocol.errors import Refused
from vaala_protocol.methods.client import ClientWithdrawParams

log = logging.getLogger(__name__)


class Offering:
    def __init__(
        self, offers: Offers, link: Callable[[], Awaitable[Link]], nursery: trio.Nursery
    ) -> None:
        self._offers = offers
        self._link = link
        self._nursery = nursery
        self._ids: dict[str, str | None] = {}
        """The server's id of each offer that it has accepted once, by conversation; None while it
        is made anew."""

    @asynccontextmanager
    async def hold(self, offer: Offer) -> AsyncGenerator[None]:
        """Offer while the block runs. Raises ``ValueError``, `Refused`, `Disconnected`."""
        self._offers.add(offer)
        try:
            while offer.conversation_id not in self._ids:
                link = await self._link()
                with suppress(Disconnected):  # the next connection will do
                    await self._make(link, offer)
            yield
        finally:
            self._offers.remove(offer)
            await self._withdraw(offer)

    def renew(self, link: Link) -> None:
        """Make all offers anew on a connection that has begun."""
        for offer in self._offers:
            if offer.conversation_id in self._ids:
                self._ids[offer.conversation_id] = None
                self._nursery.start_soon(self._make_again, link, offer)

    async def _make(self, link: Link, offer: Offer) -> None:
        made = await link.ask(offer.params())
        self._ids[offer.conversation_id] = made.offer_id

    async def _make_again(self, link: Link, offer: Offer) -> None:
        try:
            await self._make(link, offer)
        except Disconnected:
            pass  # the next connection makes it
        except (Refused, Malformed) as error:
            log.warning("the offer for %s does not stand any more: %s",
                        offer.conversation_id, error)  # fmt: skip

    async def _withdraw(self, offer: Offer) -> None:
        """Take it back if that goes at once; else the end of the connection does."""
        offer_id = self._ids.pop(offer.conversation_id, None)
        if offer_id is None:
            return
        with (
            trio.CancelScope(shield=True, deadline=trio.current_time() + limits.CLOSE_S),
            suppress(Disconnected, Refused, Malformed),
        ):
            link = await self._link()
            await link.ask(ClientWithdrawParams(offer_id=offer_id))
