"""What tokens cost. Exact: sums are of decimal numbers. What is not known is said, never zero."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from msgspec import Struct

from vaala.models.catalogue.reported import decimal_text
from vaala_protocol.prices import Cost, LongPrices, ModelPrices
from vaala_protocol.settings import Usage

_TOKENS = Decimal(1_000_000)
"""What prices are for."""


class Paid(Struct, frozen=True):
    usd: Decimal = Decimal(0)
    priced: bool = False
    """Some tokens had a price."""
    unpriced: bool = False
    """Some had none, or perhaps a higher one."""

    def __add__(self, other: Paid) -> Paid:
        return Paid(
            self.usd + other.usd, self.priced or other.priced, self.unpriced or other.unpriced
        )


def paid(usage: Usage, prices: ModelPrices | None, day: str, *, one_call: bool) -> Paid:
    """Return what the tokens of one call cost on a day (as in 2026-11-10), or of several calls.

    Which of several calls had a long prompt is not known: then the lower price is counted.
    """
    if usage.total == 0:
        return Paid()
    if prices is None or (prices.until is not None and day > prices.until):
        return Paid(unpriced=True)
    prompt = usage.input + usage.cache_read + usage.cache_write
    is_long = prices.long is not None and prompt > prices.long.above_tokens
    long = prices.long if is_long and one_call else None
    whole = Paid(unpriced=is_long and not one_call)
    counts = {
        "input": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "output": usage.output + usage.reasoning,
    }
    for name, count in counts.items():
        if count:
            whole += _class_paid(count, name, prices, long)
    return whole


def _class_paid(count: int, name: str, prices: ModelPrices, long: LongPrices | None) -> Paid:
    price: str | None = getattr(prices, name)
    higher: str | None = None if long is None else getattr(long, name)
    if higher is not None:
        price = higher
    if price is None:
        return Paid(unpriced=True)
    usd = count * Decimal(price) / _TOKENS
    return Paid(usd, priced=True, unpriced=long is not None and higher is None)


def cost(whole: Paid) -> Cost | None:
    """Return a sum as clients get it; None: nothing in it has a price."""
    if not whole.priced:
        return None
    return Cost(usd=decimal_text(whole.usd), at_least=whole.unpriced)


def day_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
