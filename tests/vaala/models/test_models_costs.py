"""What tokens cost: exact, by class and by length of the prompt, and never zero for not known."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaala.models.catalogue.costs import Paid, cost, day_of, paid
from vaala_protocol.prices import Cost, LongPrices, ModelPrices
from vaala_protocol.settings import Usage

DAY = "2026-12-01"
WHOLE = ModelPrices(input="3", cache_read="0.30", cache_write="3.75", output="15")
LONG = ModelPrices(
    input="2",
    cache_read="0.10",
    output="10",
    long=LongPrices(above_tokens=1000, input="4", cache_read="0.20", output="15"),
)
PART = ModelPrices(input="1", output="2", long=LongPrices(above_tokens=1000, input="5"))


@pytest.mark.parametrize(
    ("usage", "prices", "one_call", "expected"),
    [
        (Usage(input=1_000_000), WHOLE, True, Cost(usd="3")),
        (Usage(input=1), WHOLE, True, Cost(usd="0.000003")),
        (Usage(input=100, cache_read=1000, cache_write=10, output=7, reasoning=3), WHOLE, True,
         Cost(usd="0.0007875")),
        (Usage(reasoning=1_000_000), WHOLE, True, Cost(usd="15")),
        (Usage(), WHOLE, True, None),
        (Usage(input=5), None, True, None),
        (Usage(input=5), ModelPrices(), True, None),
        # A price of nothing is a price.
        (Usage(input=5), ModelPrices(input="0", output="0"), True, Cost(usd="0")),
        # What is read from a cache counts for the length, and every token costs more then.
        (Usage(input=600, cache_read=400, output=10), LONG, True, Cost(usd="0.00134")),
        (Usage(input=600, cache_read=401, output=10), LONG, True, Cost(usd="0.0026302")),
        (Usage(input=2000, output=10), LONG, False, Cost(usd="0.0041", at_least=True)),
        (Usage(input=1000, output=10), LONG, False, Cost(usd="0.0021")),
        # Of some tokens the price is not known.
        (Usage(input=10, cache_write=5), LONG, True, Cost(usd="0.00002", at_least=True)),
        (Usage(cache_write=5), LONG, True, None),
        (Usage(input=2000, output=100), PART, True, Cost(usd="0.0102", at_least=True)),
    ],
)  # fmt: skip
def test_what_tokens_cost(
    usage: Usage, prices: ModelPrices | None, one_call: bool, expected: Cost | None
) -> None:
    assert cost(paid(usage, prices, DAY, one_call=one_call)) == expected


@pytest.mark.parametrize(("day", "is_known"), [("2026-12-31", True), ("2027-01-01", False)])
def test_a_price_holds_until_its_last_day(day: str, is_known: bool) -> None:
    prices = ModelPrices(input="1", output="1", until="2026-12-31")
    assert (cost(paid(Usage(input=1), prices, day, one_call=True)) is not None) is is_known


def test_a_sum_with_a_gap_says_at_least() -> None:
    known = paid(Usage(input=1_000_000), WHOLE, DAY, one_call=True)
    gap = paid(Usage(input=1), None, DAY, one_call=True)
    assert cost(known + gap) == Cost(usd="3", at_least=True)
    assert cost(gap + gap) is None
    assert cost(Paid()) is None


COUNT = st.integers(min_value=0, max_value=10**9)
USAGE = st.builds(
    Usage, input=COUNT, cache_read=COUNT, cache_write=COUNT, output=COUNT, reasoning=COUNT
)


@given(st.lists(USAGE, max_size=20))
def test_a_sum_of_costs_is_the_cost_of_the_sum(calls: list[Usage]) -> None:
    one_by_one = sum((paid(call, WHOLE, DAY, one_call=True) for call in calls), Paid())
    whole = sum(calls, Usage())
    assert one_by_one.usd == paid(whole, WHOLE, DAY, one_call=True).usd
    told = cost(one_by_one)
    assert (Decimal(told.usd) if told else 0) == one_by_one.usd


def test_a_day_is_that_of_utc() -> None:
    assert day_of(1_796_083_199_999) == "2026-11-30"
    assert day_of(1_796_083_200_000) == "2026-12-01"
