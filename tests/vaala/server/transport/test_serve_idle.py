"""When a server ends by itself."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from vaala.server.idle import exit_when_idle


@pytest.mark.parametrize("idle_s", [60.0, 1800.0])
async def test_it_ends_after_the_time_without_anything_to_do(
    idle_s: float, autojump_clock: trio.testing.MockClock
) -> None:
    ended: list[float] = []
    began = trio.current_time()
    await exit_when_idle(lambda: False, lambda: ended.append(trio.current_time()), idle_s)
    assert len(ended) == 1
    assert idle_s <= ended[0] - began <= idle_s * 1.06


async def test_work_and_clients_put_it_off(autojump_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    until = began + 10_000
    await exit_when_idle(lambda: trio.current_time() < until, lambda: None, 600.0)
    assert 10_600 - 15 <= trio.current_time() - began <= 10_600 + 15


async def test_a_short_visit_counts_when_it_is_seen(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is looked every few seconds, so a client that stays for a moment may go unnoticed."""
    began = trio.current_time()
    visits = iter([False] * 5 + [True] + [False] * 100)
    await exit_when_idle(lambda: next(visits), lambda: None, 60.0)
    assert trio.current_time() - began >= 6 * 3 + 60
