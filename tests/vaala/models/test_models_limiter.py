"""Who may call a provider that says that there are too many requests."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from vaala.models.base import ModelFailure
from vaala.models.limiter import Limiter


class Provider:
    """Lets ``most`` requests through in each window of time, and refuses all others."""

    def __init__(self, most: int, window_s: float) -> None:
        self.most, self.window_s = most, window_s
        self.taken: list[int] = []
        self.refused: list[float] = []
        self.early = 0
        """Requests that came though their time was told to be later."""
        self._opens = 0.0
        self._left = most
        self._told = math.inf
        """When it first refused in this window."""

    async def request(self, who: int) -> None:
        now = trio.current_time()
        window = math.floor(now / self.window_s)
        if now >= self._opens:
            self._opens, self._left = (window + 1) * self.window_s, self.most
            self._told = math.inf
        elif now > self._told + 0.5:
            self.early += 1
        await trio.sleep(0.1)
        if self._left == 0:
            self.refused.append(now)
            self._told = min(self._told, trio.current_time())
            raise ModelFailure(
                "rate_limit", "slow down", retryable=True, retry_after_s=self._opens - now
            )
        self._left -= 1
        self.taken.append(who)


async def call(limiter: Limiter, provider: Provider, who: int) -> None:
    ticket = limiter.ticket()
    while True:
        try:
            async with limiter.turn(ticket) as turn:
                await provider.request(who)
                turn.answered()
                await trio.sleep(3)
                return
        except ModelFailure as failure:
            assert failure.kind == "rate_limit"  # noqa: PT017 # it goes on


async def test_many_at_once_finish_in_order_and_without_a_storm(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limiter, provider = Limiter(), Provider(5, 10.0)
    async with trio.open_nursery() as nursery:
        for who in range(50):
            nursery.start_soon(call, limiter, provider, who)
            await trio.testing.wait_all_tasks_blocked()
    assert len(provider.taken) == 50
    assert provider.early == 0
    # Five of the first wave and whoever was back first; then the order in which they came, more
    # or less: of those that go at once the next ones may be answered before.
    later = provider.taken[6:]
    places = {who: place for place, who in enumerate(sorted(later))}
    assert all(abs(places[who] - place) <= 6 for place, who in enumerate(later)), later
    # The first wave could not know; after it each window costs a few refusals.
    assert len(provider.refused) <= 45 + 9 * 4
    assert trio.current_time() <= 120
    assert limiter.closed_s is None


async def test_nobody_waits_while_nothing_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limiter = Limiter()
    async with trio.open_nursery() as nursery:
        for who in range(20):
            nursery.start_soon(call, limiter, Provider(100, 10.0), who)
    assert trio.current_time() == pytest.approx(3.1)


async def refuse(limiter: Limiter, seconds: float) -> None:
    with pytest.raises(ModelFailure):
        async with limiter.turn(limiter.ticket()):
            raise ModelFailure("overloaded", "busy", retry_after_s=seconds)


async def test_a_cancelled_waiter_holds_nobody_up(autojump_clock: trio.testing.MockClock) -> None:
    limiter, went = Limiter(), list[int]()
    await refuse(limiter, 5)

    async def wait(scope: trio.CancelScope, who: int) -> None:
        with scope:
            async with limiter.turn(limiter.ticket()) as turn:
                went.append(who)
                turn.answered()

    scopes = [trio.CancelScope() for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for who, scope in enumerate(scopes):
            nursery.start_soon(wait, scope, who)
            await trio.testing.wait_all_tasks_blocked()
        scopes[0].cancel()
    assert went == [1, 2]
    assert trio.current_time() == 5
    assert limiter.closed_s is None


async def test_one_at_first_and_more_with_each_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limiter, at = Limiter(), list[float]()
    await refuse(limiter, 10)

    async def one() -> None:
        async with limiter.turn(limiter.ticket()) as turn:
            at.append(trio.current_time())
            await trio.sleep(1)
            turn.answered()

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(one)
    assert [at.count(second) for second in (10, 11, 12, 13)] == [1, 2, 4, 3]


async def test_a_failure_of_another_kind_closes_nothing() -> None:
    limiter = Limiter()
    with pytest.raises(ModelFailure):
        async with limiter.turn(limiter.ticket()):
            raise ModelFailure("network", "gone")
    assert limiter.closed_s is None
