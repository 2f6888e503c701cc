"""`LiveOffer`: an offer whose connection is there, and the one way to ask it for something."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from vaala.services import limits
from vaala.services.base import Offer
from vaala.services.errors import (
    ServiceFailure,
    ServiceGarbled,
    ServiceGone,
    ServiceLacks,
    ServiceRefused,
    ServiceSilent,
)
from vaala.tools.text import clean_line
from vaala_protocol.base import Malformed
from vaala_protocol.errors import NotFound, Refused, Stopping

T = TypeVar("T")
_log = logging.getLogger(__name__)

UNTIL_ANSWERED = math.inf


class LiveOffer:
    """Every call has a deadline, and fails at once when the offer goes."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.client = clean_line(offer.client.strip(), limits.CLIENT_NAME_CHARS_MAX) or "a client"
        self.gone = False
        self._scopes: set[trio.CancelScope] = set()

    def end(self) -> None:
        """The connection is gone, or took the offer back: calls in flight fail now."""
        self.gone = True
        for scope in self._scopes:
            scope.cancel()

    async def ask(
        self,
        what: str,
        seconds: float,
        work: Callable[[], Awaitable[T]],
        *,
        changes: bool = False,
    ) -> T:
        """Return what the client answers; an answer that came with the end of its offer counts.

        ``what`` completes "the client was asked to"; with ``changes`` a failure that leaves open
        whether it was done says so. Raises `ServiceFailure` kinds. Cancel: see
        `vaala.services.base`.
        """
        if self.gone:
            raise ServiceGone(f"the client {self.client} is gone and was not asked to {what}")
        open_end = "; whether it was done is not known" if changes else ""
        scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self._scopes.add(scope)
        try:
            with scope:
                return await work()
        except ServiceFailure:
            raise
        except Exception as error:
            raise self._failure(what, open_end, error) from error
        finally:
            self._scopes.remove(scope)
        if self.gone:
            raise self._gone(what, open_end)
        raise ServiceSilent(
            f"the client {self.client} was asked to {what} and gave no answer within "
            f"{seconds:g} s{open_end}"
        )

    def garbled(self, what: str, text: str) -> ServiceGarbled:
        """Return the failure for an answer that can be read and not be used."""
        return ServiceGarbled(f"the client {self.client} was asked to {what}: {text}")

    def _gone(self, what: str, open_end: str) -> ServiceGone:
        return ServiceGone(f"the client {self.client} went away when asked to {what}{open_end}")

    def _failure(self, what: str, open_end: str, error: Exception) -> ServiceFailure:
        said = clean_line(str(error), limits.ERROR_CHARS_MAX) or "it does not say why"
        match error:
            case Malformed():
                return self.garbled(what, f"its answer cannot be read: {said}{open_end}")
            case _ if self.gone or isinstance(error, Stopping):
                return self._gone(what, open_end)
            case NotFound():
                return ServiceLacks(f"the client {self.client} cannot {what}: {said}")
            case Refused():
                return ServiceRefused(f"the client {self.client} did not {what}: {said}")
            case _:
                _log.error("asking the client %s to %s failed", self.client, what, exc_info=error)
                return ServiceRefused(
                    f"the client {self.client} could not be asked to {what}: "
                    f"{type(error).__name__}: {said}{open_end}"
                )
