"""`Services`: what the clients of one conversation serve at this moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from functools import partial

import trio
from msgspec import Struct

from vaala.services import limits
from vaala.services.base import Offer
from vaala.services.errors import ServiceFailure
from vaala.services.live import UNTIL_ANSWERED, LiveOffer
from vaala.services.tools import client_tools
from vaala.tools.base import Tool
from vaala.tools.registry import ToolSet
from vaala_protocol.errors import Overloaded


class Elicited(Struct, frozen=True):
    answer: str | None
    """None: the person does not want to answer."""
    client: str


class Services:
    """Live offers, oldest first. For each service, and each name of a tool, the newest one wins;
    when it goes, the one before it serves again. All look-ups are synchronous.
    """

    def __init__(self, taken: Callable[[], Collection[str]] = tuple) -> None:
        """``taken`` tells the names of the runtime's own tools, which no offer may use."""
        self._taken = taken
        self._offers: dict[LiveOffer, tuple[Tool, ...]] = {}
        self._changed = trio.Event()
        self._mixed: tuple[ToolSet, ToolSet] | None = None
        """The last set that was asked for, and what it became; for as long as no offer changes."""

    def __len__(self) -> int:
        """How many offers live; a conversation with one is in use."""
        return len(self._offers)

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of the clients, the newest offer last."""
        return tuple(live.client for live in self._offers)

    @contextmanager
    def offer(self, offer: Offer) -> Generator[None]:
        """Serve while the block runs. Its end fails every call in flight, at once.

        Raises `BadRequest` for a tool that cannot be offered, `Overloaded` for too many offers;
        then nothing is offered.
        """
        if len(self._offers) >= limits.OFFERS_MAX:
            raise Overloaded(
                f"{len(self._offers)} offers for this conversation are open, the most there may be"
            )
        live = LiveOffer(offer)
        self._offers[live] = client_tools(live, self._taken())
        self._notify()
        try:
            yield
        finally:
            del self._offers[live]
            live.end()
            self._notify()

    @property
    def reader(self) -> LiveOffer | None:
        """Who reads text files."""
        return self._newest(lambda offer: offer.files is not None and offer.reads)

    @property
    def writer(self) -> LiveOffer | None:
        """Who writes text files."""
        return self._newest(lambda offer: offer.files is not None and offer.writes)

    @property
    def terminals(self) -> LiveOffer | None:
        """Who runs commands."""
        return self._newest(lambda offer: offer.terminals is not None)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The offered tools, each name once, in the order in which they were first offered."""
        found: dict[str, Tool] = {}
        for tools in self._offers.values():
            found.update({tool.spec.name: tool for tool in tools})
        return tuple(found.values())

    def with_tools(self, own: ToolSet) -> ToolSet:
        """Return a set with the offered tools behind its own; cheap when nothing has changed.

        Asked for before each call of a model: a tool whose client has gone is not in it. A tool
        whose name the runtime took since it was offered is left out.
        """
        if self._mixed is None or self._mixed[0] is not own:
            taken = {*own.names, *self._taken()}
            more = [tool for tool in self.tools if tool.spec.name not in taken]
            self._mixed = own, own.plus(more) if more else own
        return self._mixed[1]

    async def elicit(self, question_id: str, text: str, choices: Sequence[str]) -> Elicited:
        """Put a question to the person through the newest client that does so, until answered.

        A client that goes or fails is not asked again; the next newest one is, or the next that
        comes. Cancel: the question is taken back, such as when it was answered another way.
        """
        failed: set[LiveOffer] = set()
        while True:
            changed = self._changed
            live = self._newest(lambda offer: offer.elicitor is not None, failed)
            if live is None:
                await changed.wait()
                continue
            elicitor = live.offer.elicitor
            assert elicitor is not None
            work = partial(elicitor.elicit, question_id, text, choices)
            try:
                answer = await live.ask("put a question to the person", UNTIL_ANSWERED, work)
            except ServiceFailure:
                failed = {one for one in (*failed, live) if not one.gone}
            else:
                return Elicited(answer, live.client)

    def _newest(
        self, serves: Callable[[Offer], bool], without: Collection[LiveOffer] = ()
    ) -> LiveOffer | None:
        return next(
            (live for live in reversed(self._offers) if serves(live.offer) and live not in without),
            None,
        )

    def _notify(self) -> None:
        self._mixed = None
        self._changed.set()
        self._changed = trio.Event()
