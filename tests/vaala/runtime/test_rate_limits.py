"""Many sessions at one provider that lets few requests through: no storm, all finish, in order."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock

from tests.vaala.models.rationed import Rationed
from tests.vaala.runtime.driving import idle, snapshot
from tests.vaala.runtime.worlds import World, kinds, settle
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent
from vaala.runtime import Runtime
from vaala.testing.function_model import Said, answer
from vaala_protocol.items import ModelError
from vaala_protocol.settings import Settings
from vaala_protocol.state import TurnResult

SESSIONS = 50


async def begun(runtime: Runtime) -> ConversationHandle:
    return await runtime.create_conversation(directory="/w", settings=Settings(mode="full"))


@asynccontextmanager
async def talks(model: Rationed, number: int) -> AsyncGenerator[list[ConversationHandle]]:
    async with World(model).runtime() as runtime:
        yield [await begun(runtime) for _ in range(number)]


async def test_fifty_sessions_at_a_limit(autojump_clock: MockClock) -> None:  # B4-5
    model = Rationed(10)
    results: list[TurnResult] = []

    async def run(talk: ConversationHandle, prompt: str) -> None:
        results.append(await talk.run(prompt))

    async with talks(model, SESSIONS) as all_talks:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number, talk in enumerate(all_talks):
                nursery.start_soon(run, talk, str(number))
        took = trio.current_time() - began
        errors = [len(await kinds(talk, ModelError)) for talk in all_talks]
    assert [result.turn.state for result in results] == ["completed"] * SESSIONS
    assert model.early == []
    assert model.passed == model.came
    assert len(model.refused) == sum(errors) <= 40 + 6 + 3
    assert max(errors) <= 3
    assert took < 4 * 60 + 10


def spawning(said: Said) -> list[ModelEvent]:
    if said.prompt != "spawn" or said.results:
        return answer(said.prompt)
    return answer("", *(("spawn_agent", {"task": f"task {one}"}) for one in range(10)))


async def test_child_sessions_wait_with_all_others(autojump_clock: MockClock) -> None:  # B4-5
    model = Rationed(3, latency_s=0.1)
    model.replies = spawning
    async with talks(model, 2) as (parent, other):
        assert (await parent.run("spawn")).turn.state == "completed"
        await other.send("hello")
        await settle(8 * 60)
    tasks = {f"task {one}" for one in range(10)}
    assert tasks | {"hello"} <= set(model.passed)
    assert model.early == []
    # Ten children at once are told so; then one that is too many in each window.
    assert len(model.refused) <= 10 + 3 + 8


async def test_who_waits_for_others_shows_it_and_can_be_interrupted(
    autojump_clock: MockClock,
) -> None:
    async with talks(model := Rationed(1), 3) as (first, second, third):
        assert (await first.run("first")).text == "first"
        await second.send("second")
        await settle(1)
        await third.send("third")
        await settle(1)
        (wait,) = (await snapshot(third)).sessions[0].waits
        assert wait.reason == "p: rate limit (HTTP 429); nobody asks before"
        assert wait.deadline_at is not None
        assert 50_000 < wait.deadline_at - wait.since < 60_000
        assert await kinds(third, ModelError) == []
        began = trio.current_time()
        assert await second.interrupt()
        await idle(second)
        assert trio.current_time() == began
        await settle(60)
        await idle(third)
        assert model.passed == ["first", "third"]


async def test_a_turn_that_is_not_even_asked_says_why_and_until_when(
    autojump_clock: MockClock,
) -> None:  # B4-2
    async with talks(model := Rationed(1, 3600), 3) as (first, second, third):
        await first.run("first")
        assert "try again at" in (await second.run("second")).turn.message
        before = trio.current_time()
        told = (await third.run("third")).turn
        assert (told.state, trio.current_time()) == ("failed", before)
        assert told.message.startswith("p: rate limit (HTTP 429); try again at ")
        assert "third" not in model.came
