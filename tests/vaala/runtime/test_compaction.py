"""A history that does not fit the window: it gets shorter, and what counts of it stays."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import calls, snapshot
from tests.vaala.runtime.small_window import (
    SmallWindow,
    failing_summary,
    text_of_request,
)
from tests.vaala.runtime.worlds import World, kinds, settle
from vaala.agent.definition import AgentDefinition
from vaala.agent.fitting import Compaction
from vaala.models.base import (
    ModelEvent,
    ModelRequest,
)
from vaala.testing.function_model import answer
from vaala_protocol.content import text_of
from vaala_protocol.items import ContextCut, ContextSummary
from vaala_protocol.settings import Settings

TASK = "The task: count the stars, and never run git push."
LAST = "Wish {}: keep to the northern sky."
LINE = "It was a clear night and the stars were many. "


async def talking(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    for event in answer(LINE * 40):
        yield event


async def look(number: int) -> str:
    """Look at a part of the sky."""
    return f"part {number}: " + "star " * 1_600


def working(calls: int) -> Any:
    """Return a model that calls ``look`` so often, one call a step, and then ends."""
    made = 0

    async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        nonlocal made
        made += 1
        more = made <= calls
        for event in answer("" if more else "done", *([("look", {"number": made})] * more)):
            yield event

    return respond


def world_of(model: SmallWindow, compaction: Compaction | None = None, **options: Any) -> World:
    agent = AgentDefinition(
        "default", "You count stars.", tools=("look",), compaction=compaction or Compaction()
    )
    return World(model, agents={"default": agent}, tools=[look], **options)


async def cuts(talk: Any) -> list[ContextCut | ContextSummary]:
    return [*await kinds(talk, ContextCut), *await kinds(talk, ContextSummary)]


def user_texts(body: str) -> list[str]:
    return [m["content"] for m in json.loads(body)["messages"] if m["role"] == "user"]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("summarise", [None, failing_summary])
async def test_a_long_conversation_goes_on_and_keeps_its_task(
    told: bool, summarise: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """C2-3, B9-3, C1-3."""
    model = SmallWindow(talking, 4_000, told=told, summarise=summarise)
    async with world_of(model).talk() as (_, talk):
        assert (await talk.run(TASK)).turn.state == "completed"
        for number in range(40):
            result = await talk.run(LAST.format(number))
            assert (result.turn.state, result.turn.message) == ("completed", "")
        assert model.refused == []
        assert max(model.sizes) <= 4_000
        last = user_texts(model.bodies[-1])
        assert any(TASK in text for text in last)
        assert LAST.format(39) in last[-1]
        assert LAST.format(38) in "".join(last)
        found = await cuts(talk)
        assert len(found) < 16
        assert model.refusals <= (0 if told else 1)
        kind = ContextSummary if summarise is None else ContextCut
        assert all(isinstance(one, kind) for one in found)
        assert all(0 < one.tokens_after < one.tokens_before for one in found)
        if summarise is None:
            assert "Much was done" in "".join(last)
            assert all(one.usage.input for one in await kinds(talk, ContextSummary))


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("summarise", [None, failing_summary])
async def test_a_long_turn_goes_on_and_keeps_its_task(
    told: bool, summarise: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """C2-2."""
    model = SmallWindow(working(60), 16_000, told=told, summarise=summarise)
    async with world_of(model).talk() as (_, talk):
        result = await talk.run(TASK)
        assert (result.turn.state, result.text, result.turn.steps) == ("completed", "done", 61)
        assert model.refused == []
        assert all(TASK in body for body in model.bodies)
        assert model.refusals <= (0 if told else 1)
        if summarise is None:  # what they use counts, too
            assert sum(used.input for used in result.turn.usage.values()) == model.tokens
        shortened = [one for one in await kinds(talk, ContextCut) if one.shortens]
        assert shortened
        for body in model.bodies[1:]:
            results = [m["content"] for m in json.loads(body)["messages"] if m["role"] == "tool"]
            assert len(results[-1]) > 7_000


async def test_a_reader_of_the_log_sends_the_same(autojump_clock: trio.testing.MockClock) -> None:
    """What a runtime sends after a restart begins with what it sent before."""
    model = SmallWindow(talking, 4_000)
    world = world_of(model)
    async with world.talk() as (_, talk):
        await talk.run(TASK)
        for number in range(12):
            await talk.run(LAST.format(number))
        assert await cuts(talk)
        id = talk.id
    before = model.bodies[-1]
    async with world.runtime() as runtime:
        talk = await runtime.open_conversation(id)
        await talk.run("again")
    old = json.loads(before)["messages"]
    assert json.loads(model.bodies[-1])["messages"][: len(old)] == old


async def test_only_what_cannot_become_less_ends_the_turn(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """C1-1: one attempt, then an error that names the sizes."""
    model = SmallWindow(talking, 2_000)
    async with world_of(model).talk() as (_, talk):
        result = await talk.run("long " * 2_000)
        assert result.turn.state == "failed"
        assert "window of small, 2,000 tokens" in result.turn.message
        assert "system prompt has about" in result.turn.message
        assert model.refusals == 1
        assert await cuts(talk) == []
        again = await talk.run("and now?")
        assert again.turn.state == "completed"


async def test_a_report_of_ten_times_as_many_does_not_compact_each_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """C1-4."""
    model = SmallWindow(talking, 40_000, bytes_per_token=0.35)
    async with world_of(model).talk() as (_, talk):
        for number in range(30):
            assert (await talk.run(LAST.format(number))).turn.state == "completed"
        assert 1 <= len(await cuts(talk)) <= 15


async def test_without_summaries_the_oldest_turns_are_left_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = SmallWindow(talking, 4_000)
    async with world_of(model, Compaction(auto=False, at=0.5, aim=0.3)).talk() as (_, talk):
        for number in range(12):
            assert (await talk.run(LAST.format(number))).turn.state == "completed"
        assert model.summaries == 0
        assert max(model.sizes) <= 2_500
        assert {one.reason for one in await kinds(talk, ContextCut)} == {"summaries are off"}


async def test_the_results_that_are_to_be_answered_shrink_last(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Ten results of 8 KB at once, with a window of 6,000 tokens."""

    async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        looked = "part 9" in text_of_request(request)
        calls = [] if looked else [("look", {"number": number}) for number in range(10)]
        for event in answer("done" if looked else "", *calls):
            yield event

    model = SmallWindow(respond, 6_000)
    async with world_of(model).talk() as (runtime, talk):
        result = await talk.run(TASK)
        assert (result.turn.state, result.text) == ("completed", "done"), result.turn.message
        (cut,) = await kinds(talk, ContextCut)
        assert 256 <= cut.result_bytes < 1_024
        assert [model.bodies[-1].count(f"part {number}: star") for number in range(10)] == [1] * 10
        assert model.bodies[-1].count("(shortened; read_file blob:") == 10
        session = await (await runtime.conversation(talk.id)).root()
        for call in await calls(talk):
            whole = await session.files.load(call.id, 0, 10_000)
            assert whole.decode() == text_of(call.result)


async def test_a_message_waits_for_a_compaction_that_was_asked_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H5-5, C1-3: also when that fails, and then nothing has changed."""
    model = SmallWindow(talking, 8_000, summarise=failing_summary)
    async with world_of(model).talk() as (_, talk):
        await talk.run(TASK)
        turn = await talk.compact()
        result = await talk.run("more")
        assert result.turn.state == "completed"
        failed = (await talk.turn(turn.id)).turn
        assert (failed.state, failed.message) == ("failed", "Not compacted: no summaries today")
        assert failed.ended_at is not None
        assert failed.ended_at <= result.turn.started_at
        assert await cuts(talk) == []
        assert model.bodies[-1].count(LINE * 40) == 1


async def test_a_compaction_that_was_asked_for_is_interrupted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """C1-5."""
    model = SmallWindow(talking, 8_000, hangs=True)
    async with world_of(model).talk() as (_, talk):
        await talk.run(TASK)
        turn = await talk.compact()
        await settle()
        assert await talk.interrupt(turn.id)
        await settle()
        assert (await talk.turn(turn.id)).turn.state == "interrupted"
        assert await cuts(talk) == []
        assert (await talk.run("more")).turn.state == "completed"


async def test_a_much_smaller_window_is_reached_in_one_go(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """C1-2."""
    large = SmallWindow(talking, 100_000, name="large")
    small = SmallWindow(talking, 5_000, name="tiny")
    async with world_of([large, small]).talk() as (_, talk):  # type: ignore[arg-type] # two models
        await talk.run(TASK)
        for number in range(30):
            await talk.run(LAST.format(number))
        assert large.sizes[-1] > 3 * small.window
        await talk.configure(Settings(model="tiny"))
        result = await talk.run("Go on, please.")
        assert result.turn.state == "completed", result.turn.message
        assert small.refusals == 0
        assert small.summaries > 1
        assert TASK in small.bodies[-1]


async def test_a_summary_that_hangs_is_interrupted_and_changes_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """C1-5, H4-1, B3-4, H5-5."""
    model = SmallWindow(talking, 4_000, hangs=True)
    async with world_of(model).talk() as (_, talk), trio.open_nursery() as nursery:
        while not model.summaries:
            await talk.send("more")
            await settle()
        (session,) = (await snapshot(talk)).sessions
        assert "compacting" in [wait.reason for wait in session.waits]
        await talk.interrupt()
        await settle()
        (session,) = (await snapshot(talk)).sessions
        assert session.turn is not None
        assert session.turn.state == "interrupted"
        assert await cuts(talk) == []
        nursery.start_soon(talk.run, "go on")
        await settle(400)  # the deadline of a summary
        (cut,) = await kinds(talk, ContextCut)
        assert "more than 300 s" in cut.reason
        (session,) = (await snapshot(talk)).sessions
        assert session.turn is not None
        assert session.turn.state == "completed"
