"""Watching: a snapshot, then every event, whoever comes, goes, lags or returns."""

from __future__ import annotations

from tests.vaala.runtime.driving import script
from tests.vaala.runtime.fake_executor import FakeExecutor
from tests.vaala.server.api.serving import is_event, server, updates
from vaala.testing.projection import Projection
from vaala_protocol.events import TurnChanged
from vaala_protocol.state import Snapshot


async def test_a_turn_is_seen_by_a_viewer(autojump_clock: object) -> None:
    async with (
        server(script({"say": "hello world"}), executors={"local": FakeExecutor()}) as served,
        served.client("driver") as driver,
        served.client("viewer") as viewer,
    ):
        talk = await driver.create()
        first = await viewer.watch(talk)
        assert isinstance(first, Snapshot)
        await driver.send(talk, "hi")
        await viewer.hear(
            lambda n: is_event(TurnChanged)(n) and n.frame.event.turn.state == "completed"
        )
        projection = Projection()
        projection.apply(first)
        for update in updates(viewer, talk):
            projection.apply(update)
        assert projection.state == await driver.watch(talk)
