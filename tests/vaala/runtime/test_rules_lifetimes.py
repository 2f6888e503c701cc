"""Fences, closing and reopening, the ordered end; children and their results over restarts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import idle, snapshot
from tests.vaala.runtime.worlds import World, all_items, crashing, kinds, run_seeds, settle
from vaala.models.base import ModelEvent, ModelRequest, TextDelta
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.content import text_of
from vaala_protocol.errors import Stopping
from vaala_protocol.events import Frame, SessionClosed
from vaala_protocol.items import (
    AssistantMessage,
    Interruption,
    PeerMessage,
    ToolCall,
    UserMessage,
)
from vaala_protocol.settings import Settings
from vaala_protocol.state import UserInput


class Crew:
    """A model whose root starts a child that works for a while, without waiting for it."""

    def __init__(self, child_s: float = 5.0) -> None:
        self.child_s = child_s
        self.tool_ran = 0
        self.world = World(FunctionModel(self.respond), tools=[self.slow])

    async def slow(self) -> str:
        """Take a minute."""
        self.tool_ran += 1
        await trio.sleep(60)
        return "slow result"

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        said = newest(request)
        events = answer("fine")
        match said.prompt:
            case "spawn" if not said.results:
                events = answer("", ("spawn_agent", {"task": "work"}))
            case "manage":
                if not said.results:
                    events = answer("", ("spawn_agent", {"task": "work"}))
            case "have managed" if not said.results:
                events = answer("", ("spawn_agent", {"task": "manage"}))
            case "work":
                await trio.sleep(self.child_s)
                events = answer("the child's result")
            case "stream":
                yield TextDelta("partial text")
                await trio.sleep_forever()
            case "tool" if not said.results:
                events = answer("I call", ("slow", {}))
            case _:
                pass
        for event in events:
            yield event


async def test_a_bug_in_one_session_leaves_the_others_alone(
    autojump_clock: trio.testing.MockClock, errors_logged: list[str]
) -> None:
    crew = Crew()
    async with crew.world.talk() as (runtime, first), first.subscribe() as updates:
        await anext(updates)
        second = await runtime.create_conversation(directory="/w", settings=Settings(mode="full"))
        await first.run("hello")
        await second.send("tool")
        await settle(1)
        root = await (await runtime.conversation(first.id)).root()
        with pytest.raises(Stopping, match="crashed"):
            await root.ask(object())  # type: ignore[arg-type] # a message that no handler knows
        await settle(1)
        assert any("crashed" in text for text in errors_logged)
        async for update in updates:
            if isinstance(update, Frame) and isinstance(update.event, SessionClosed):
                break
        assert (await first.run("again")).text == "fine"  # opened again from its log
        said = [text_of(one.content) for one in await kinds(first, UserMessage)]
        assert said == ["hello", "again"]
        await settle(90)
        assert [call.state for call in await kinds(second, ToolCall)] == ["done"]
        assert (await second.run("hello")).text == "fine"


async def test_an_unused_conversation_closes_and_opens_again_by_its_handle(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crew = Crew()
    async with crew.world.talk() as (runtime, talk):
        await talk.run("hello")
        assert runtime.open_conversations == 1
        await settle(500)
        assert runtime.open_conversations == 1
        await settle(200)
        assert runtime.open_conversations == 0
        assert (await talk.run("again")).text == "fine"
        assert runtime.open_conversations == 1
        said = [text_of(one.content) for one in await kinds(talk, UserMessage)]
        assert said == ["hello", "again"]


async def test_a_conversation_stays_open_while_somebody_looks_or_something_runs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crew = Crew(child_s=2000)
    async with crew.world.talk() as (runtime, talk):
        async with talk.subscribe():
            await talk.run("hello")
            await settle(1500)
            assert runtime.open_conversations == 1
        await talk.send("work")
        await settle(1900)
        assert runtime.open_conversations == 1
        await settle(1000)
        assert runtime.open_conversations == 0


@pytest.mark.parametrize("work", ["stream", "tool"])
async def test_leaving_the_runtime_interrupts_and_keeps_what_there_is(
    work: str, autojump_clock: trio.testing.MockClock
) -> None:
    """H9-1."""
    crew = Crew()
    async with crew.world.talk() as (_, talk):
        await talk.run("hello")
        await talk.send(work)
        await settle(1)
        began = trio.current_time()
    assert trio.current_time() - began < 5
    crew.world.disk.cut_power()
    crew.world.disk.restart(power_was_lost=True)  # whatever counts was durable before
    async with crew.world.runtime() as runtime:
        again = await runtime.open_conversation(talk.id)
        turn = (await snapshot(again)).sessions[0].turn
        assert turn is not None
        assert (turn.state, turn.interrupted_by) == ("interrupted", "shutdown")
        assert [one.by for one in await kinds(again, Interruption)] == ["shutdown"]
        if work == "stream":
            said = (await kinds(again, AssistantMessage))[-1]
            assert (said.text, said.partial) == ("partial text", True)
        else:
            (call,) = await kinds(again, ToolCall)
            assert call.state == "cancelled"
        assert (await again.run("go on")).text == "fine"


def test_a_send_that_waits_at_shutdown_is_answered() -> None:
    async def story(random: Random) -> None:
        crew = Crew()
        outcomes: list[str] = []
        async with trio.open_nursery() as nursery, crew.world.talk() as (_, talk):
            await talk.send("stream")

            async def client(number: int) -> None:
                for _ in range(random.randrange(30)):
                    await trio.lowlevel.checkpoint()
                try:
                    await talk.send(f"text {number}", client_id=str(number))
                except Stopping:
                    outcomes.append("refused")
                else:
                    outcomes.append("accepted")

            for number in range(8):
                nursery.start_soon(client, number)
            for _ in range(random.randrange(30)):
                await trio.lowlevel.checkpoint()
        assert len(outcomes) == 8
        async with crew.world.runtime() as runtime:
            again = await runtime.open_conversation(talk.id)
            root = await (await runtime.conversation(talk.id)).root()
            waiting = [one for one in root.state.pending if isinstance(one.source, UserInput)]
            assert all(one.state == "held" for one in waiting)
            assert len(waiting) >= outcomes.count("accepted")
            assert (await again.run("hello")).text == "fine"
            assert not root.state.pending

    run_seeds(story, 40)


async def test_the_result_of_a_child_is_told_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crew = Crew()
    async with crew.world.talk() as (_, talk):
        await talk.run("spawn")
        await settle(30)
        await talk.run("hello")
        await talk.run("hello")
        (told,) = await kinds(talk, PeerMessage)
        assert (told.turn_state, text_of(told.content)) == ("completed", "the child's result")
    async with crew.world.runtime() as runtime:
        again = await runtime.open_conversation(talk.id)
        await settle(5)
        await again.run("hello")
        assert len(await kinds(again, PeerMessage)) == 1


@pytest.mark.parametrize("child_s", [5.0, 500.0])
async def test_the_result_of_a_child_survives_a_crash_and_is_told_once(
    child_s: float, autojump_clock: trio.testing.MockClock
) -> None:
    crew = Crew(child_s)
    async with crashing(crew.world, power_was_lost=True), crew.world.talk() as (_, talk):
        await talk.run("spawn")
        await settle(30)
        crew.world.disk.cut_power()
    for _ in range(3):
        async with crew.world.runtime() as runtime:
            again = await runtime.open_conversation(talk.id)
            await settle(5)
            await again.run("hello")
            await again.run("hello")
            (told,) = await kinds(again, PeerMessage)
            state = "completed" if child_s == 5.0 else "interrupted"
            assert told.turn_state == state


def test_a_crash_anywhere_leaves_a_usable_conversation() -> None:
    """A1-3, A1-5, H9-2: at every write of a turn with a tool and a child."""

    async def story(random: Random) -> None:
        crew = Crew()
        async with crashing(crew.world, power_was_lost=True), crew.world.talk() as (_, talk):
            await talk.run("hello")
            crew.world.disk.cut_power(random.randrange(1, 25))
            for prompt in ("spawn", "tool", "hello"):
                await talk.send(prompt)
            await settle(200)
            crew.world.disk.cut_power()
            await talk.send("never")
        async with crew.world.runtime() as runtime:
            again = await runtime.open_conversation(talk.id)
            await settle(1)
            conversation = await runtime.conversation(talk.id)
            assert conversation.info.status == "idle"
            for session_id in await conversation.log.session_ids():
                turn = (await conversation.log.open_session(session_id)).state.head.turn
                assert turn is None or turn.state != "running", session_id
            before = await all_items(again)
        async with crew.world.runtime() as runtime:
            again = await runtime.open_conversation(talk.id)
            await settle(1)
            assert await all_items(again) == before
            assert (await again.run("hello")).text == "fine"
            await idle(again)
            states = {call.state for call in await kinds(again, ToolCall)}
            assert states <= {"done", "unknown", "cancelled"}
        assert crew.tool_ran <= 1

    run_seeds(story, 60)


async def test_a_conversation_closes_when_its_agents_are_at_rest(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crew = Crew()
    async with crew.world.talk() as (runtime, talk):
        await talk.run("spawn")
        await settle(700)
        assert runtime.open_conversations == 0
        await talk.run("hello")
        await talk.run("hello")
        assert len(await kinds(talk, PeerMessage)) == 1


@pytest.mark.parametrize("end", ["rest", "crash"])
async def test_an_agent_is_at_rest_when_those_below_it_are(
    end: str, autojump_clock: trio.testing.MockClock
) -> None:
    crew = Crew(child_s=100)
    async with crashing(crew.world), crew.world.talk() as (_, talk):
        await talk.run("have managed")
        await settle(50)
        await talk.run("hello")
        assert await kinds(talk, PeerMessage) == []  # the manager is done, its worker is not
        if end == "crash":
            crew.world.disk.stop_now()
            await trio.sleep_forever()
        await settle(100)
        await talk.run("hello")
        assert len(await kinds(talk, PeerMessage)) == 1
    async with crew.world.runtime() as runtime:
        again = await runtime.open_conversation(talk.id)
        await settle(1)
        log = (await runtime.conversation(talk.id)).log
        for session_id in await log.session_ids():
            turn = (await log.open_session(session_id)).state.head.turn
            assert turn is not None
            assert turn.state != "running"
        await again.run("hello")
        assert len(await kinds(again, PeerMessage)) == 1
