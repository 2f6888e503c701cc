"""When a server ends by itself."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from tests.vaala.server.api.serving import server
from vaala.server.idle import exit_when_idle
from vaala.server.views import ApiViews
from vaala_protocol.methods.runtime import RuntimeStatusParams


def never() -> float:
    return -math.inf


@pytest.mark.parametrize("idle_s", [60.0, 1800.0])
async def test_it_ends_after_the_time_without_anything_to_do(
    idle_s: float, autojump_clock: trio.testing.MockClock
) -> None:
    ended: list[float] = []
    began = trio.current_time()
    await exit_when_idle(lambda: False, never, lambda: ended.append(trio.current_time()), idle_s)
    assert len(ended) == 1
    assert idle_s <= ended[0] - began <= idle_s * 1.06


async def test_work_and_clients_put_it_off(autojump_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    until = began + 10_000
    await exit_when_idle(lambda: trio.current_time() < until, never, lambda: None, 600.0)
    assert 10_600 - 15 <= trio.current_time() - began <= 10_600 + 15


async def test_a_visit_between_two_looks_counts(autojump_clock: trio.testing.MockClock) -> None:
    visits: list[float] = [-math.inf]

    async def poll() -> None:
        for _ in range(100):
            await trio.sleep(20.0)
            visits.append(trio.current_time())

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        await exit_when_idle(lambda: False, lambda: visits[-1], lambda: None, 60.0)
    assert 2_000 + 60 <= trio.current_time() - began <= 2_000 + 65


async def test_clients_and_views_count_as_use(autojump_clock: trio.testing.MockClock) -> None:
    async with server() as served:
        clients = served.api.clients
        assert clients.used_at == -math.inf
        async with served.client():
            await trio.sleep(100.0)
        assert clients.used_at == trio.current_time()
        views = ApiViews(served.api)
        await trio.sleep(100.0)
        await views.read(RuntimeStatusParams())
        assert clients.used_at == trio.current_time()
        await trio.sleep(100.0)
        views.tools()
        assert clients.used_at == trio.current_time()
