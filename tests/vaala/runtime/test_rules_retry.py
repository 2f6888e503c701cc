"""A model that fails: waits that are shown, one message in the end, and no hidden hour."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import idle, snapshot
from tests.vaala.runtime.worlds import World, kinds, settle
from vaala.models.base import ModelEvent, ModelFailure, ModelRequest, TextDelta
from vaala.testing.function_model import FunctionModel, answer
from vaala_protocol.items import AssistantMessage, ModelError
from vaala_protocol.settings import ErrorKind


class Flaky:
    """Fails as often as told, after having said a part, then answers."""

    def __init__(
        self,
        kind: ErrorKind,
        times: int,
        *,
        said: str = "",
        retryable: bool = True,
        after_s: float | None = None,
    ) -> None:
        self.failure = ModelFailure(kind, "busy", retryable=retryable, retry_after_s=after_s)
        self.times = times
        self.said = said
        self.called_at: list[float] = []
        self.world = World(FunctionModel(self.respond))

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.called_at.append(trio.current_time())
        if len(self.called_at) <= self.times:
            if self.said:
                yield TextDelta(self.said)
            raise self.failure
        for event in answer("the answer"):
            yield event


@pytest.mark.parametrize("said", ["", "half a sent"])
async def test_failures_then_success_make_one_message(
    said: str, autojump_clock: trio.testing.MockClock
) -> None:
    """B4-4."""
    flaky = Flaky("overloaded", 3, said=said)
    async with flaky.world.talk() as (_, talk), talk.subscribe() as updates:
        await anext(updates)
        result = await talk.run("go")
        assert (result.turn.state, result.text) == ("completed", "the answer")
        assert [one.text for one in await kinds(talk, AssistantMessage)] == ["the answer"]
        errors = await kinds(talk, ModelError)
        assert [one.attempt for one in errors] == [1, 2, 3]
        assert all(one.retry_in_ms is not None for one in errors)
        assert (await snapshot(talk)).sessions[0].live == ()
    assert len(flaky.called_at) == 4


async def test_retry_after_is_kept_and_the_wait_is_seen_and_can_be_interrupted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """B4-1."""
    flaky = Flaky("rate_limit", 2, after_s=7)
    async with flaky.world.talk() as (_, talk):
        await talk.send("go")
        await settle(3)
        (wait,) = (await snapshot(talk)).sessions[0].waits
        assert "busy" in wait.reason
        assert wait.deadline_at is not None
        assert wait.deadline_at - wait.since >= 7000
        await settle(10)
        assert flaky.called_at[1] - flaky.called_at[0] >= 7
        began = trio.current_time()
        assert await talk.interrupt()
        await idle(talk)
        assert trio.current_time() - began < 1
        assert (await talk.run("again")).text == "the answer"


async def test_a_wait_of_an_hour_is_told_and_not_sat_through(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """B4-2."""
    flaky = Flaky("rate_limit", 1, after_s=3600)
    async with flaky.world.talk() as (_, talk):
        began = trio.current_time()
        result = await talk.run("go")
        assert trio.current_time() - began < 1
        assert result.turn.state == "failed"
        assert "try again at" in result.turn.message


@pytest.mark.parametrize("kind", ["auth", "invalid_request", "refused", "billing"])
async def test_what_cannot_get_better_is_asked_once(
    kind: ErrorKind, autojump_clock: trio.testing.MockClock
) -> None:
    """B4-3."""
    flaky = Flaky(kind, 1, retryable=False)
    async with flaky.world.talk() as (_, talk):
        result = await talk.run("go")
        assert (result.turn.state, len(flaky.called_at)) == ("failed", 1)
        assert (await talk.run("again")).text == "the answer"


async def test_what_was_said_before_the_last_failure_is_kept_as_partial(
    autojump_clock: trio.testing.MockClock,
) -> None:
    flaky = Flaky("network", 1, said="half a sent", retryable=False)
    async with flaky.world.talk() as (_, talk):
        result = await talk.run("go")
        assert result.turn.state == "failed"
        (said,) = await kinds(talk, AssistantMessage)
        assert (said.text, said.partial) == ("half a sent", True)
        assert (await talk.run("again")).text == "the answer"
