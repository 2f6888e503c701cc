"""A disk that fails under a turn: it waits, says so, stays interruptible, and nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import is_turn, snapshot, until
from tests.vaala.runtime.worlds import World, all_items, crashing, kinds, run_seeds, settle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.content import text_of
from vaala_protocol.errors import NotDurable
from vaala_protocol.events import Frame, Unsaved
from vaala_protocol.items import AssistantMessage, Interruption, ToolCall, UserMessage
from vaala_protocol.state import Snapshot


class Work:
    """Tools that take a second, counted; the model calls one three times, then says so."""

    def __init__(self) -> None:
        self.runs = 0
        self.model = FunctionModel(self.respond)

    async def work(self) -> str:
        """Take a second."""
        await trio.sleep(1)
        self.runs += 1
        return f"run {self.runs}"

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        done = len(newest(request).results)
        for event in answer(f"done {done}", ("work", {})) if done < 3 else answer("finished"):
            yield event

    @property
    def world(self) -> World:
        return World(self.model, tools=[self.work])


async def test_a_full_disk_makes_the_turn_wait_and_space_lets_it_go_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """G3-1."""
    work = Work()
    world = work.world
    async with world.talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("go")
        await settle(0.5)
        world.disk.fill()
        await settle(120)
        assert work.runs == 1  # the result is kept in memory, and nothing new begins
        assert work.model.requests == 1
        seen = (await snapshot(talk)).sessions[0]
        assert seen.unsaved is not None
        assert "space" in seen.unsaved
        assert any(wait.subject == "disk" for wait in seen.waits)
        (call,) = await kinds(talk, ToolCall)
        assert call.state == "running"  # as it is on disk
        world.disk.make_room()
        await until(updates, is_turn("completed"))
        assert [text_of(one.result) for one in await kinds(talk, ToolCall)] == [
            "run 1", "run 2", "run 3",
        ]  # fmt: skip
        assert (await snapshot(talk)).sessions[0].unsaved is None


async def test_clients_are_told_when_it_is_unsaved_and_when_it_is_saved(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """G3-2."""
    world = Work().world
    told: list[str | None] = []
    async with world.talk() as (_, talk), talk.subscribe() as updates:
        assert isinstance(await anext(updates), Snapshot)
        await talk.send("go")
        await settle(0.5)
        world.disk.fill()
        await settle(20)
        world.disk.make_room()
        async for update in updates:
            match update:
                case Frame(event=Unsaved(reason=reason)):
                    told.append(reason)
                    if reason is None:
                        break
                case _:
                    pass
    assert told[0] is not None
    assert told[-1] is None


async def test_a_message_that_cannot_be_saved_is_refused_and_leaves_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    work = Work()
    world = work.world
    async with world.talk() as (_, talk):
        await talk.run("first")
        world.disk.fill()
        with pytest.raises(NotDurable, match="space"):
            await talk.send("lost", client_id="mine")
        world.disk.make_room()
        again = await talk.run("second")
        assert again.text == "finished"
        said = [text_of(one.content) for one in await kinds(talk, UserMessage)]
        assert said == ["first", "second"]
        sent = await talk.send("lost", client_id="mine")  # the same id was not used up
        assert sent.client_id == "mine"


def test_faults_of_every_kind_lose_no_result() -> None:
    """G3-1, G3-2: with a disk that fails at random a turn comes to its end with every result."""

    async def story(random: Random) -> None:
        work = Work()
        world = work.world
        async with world.talk() as (_, talk):
            await talk.send("go")
            world.disk.files.rate = 0.3
            await settle(200)
            world.disk.files.rate = 0.0
            await settle(60)
            turn = (await snapshot(talk)).sessions[0].turn
            assert turn is not None
            assert turn.state == "completed"
            assert work.runs == 3
            assert [text_of(one.result) for one in await kinds(talk, ToolCall)] == [
                "run 1", "run 2", "run 3",
            ]  # fmt: skip
            said = [one.text for one in await kinds(talk, AssistantMessage)]
            assert said == ["done 0", "done 1", "done 2", "finished"]
            items = await all_items(talk)
        async with world.runtime() as runtime:
            reopened = await runtime.open_conversation(talk.id)
            assert await all_items(reopened) == items

    run_seeds(story, 40)


async def test_a_turn_that_waits_for_the_disk_can_be_interrupted_and_ends_when_it_can(
    autojump_clock: trio.testing.MockClock,
) -> None:
    work = Work()
    world = work.world
    async with world.talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("go")
        await settle(0.5)
        world.disk.fill()
        await settle(5)
        assert await talk.interrupt()
        await settle(60)
        assert (await snapshot(talk)).sessions[0].unsaved is not None
        world.disk.make_room()
        await until(updates, is_turn("interrupted"))
        (call,) = await kinds(talk, ToolCall)
        assert (call.state, text_of(call.result)) == ("done", "run 1")
        assert (await talk.run("and now")).text == "finished"


def test_a_message_whose_append_has_no_known_outcome_is_taken_once() -> None:
    """H5-3: refused, perhaps landed, sent again: one message, one turn, and no turn left open."""

    async def story(random: Random) -> None:
        work = Work()
        world = World(work.model, tools=[work.work], seed=random.randrange(1000))
        async with world.talk() as (_, talk):
            await talk.run("first")
            world.disk.files.rate = 0.7
            for _ in range(30):
                try:
                    await talk.send("second", client_id="mine")
                except NotDurable:
                    await settle(random.choice((0, 1)))
                else:
                    break
            world.disk.files.rate = 0.0
            await talk.send("second", client_id="mine")
            await settle(60)
            said = [text_of(one.content) for one in await kinds(talk, UserMessage)]
            assert said == ["first", "second"]
            places = [item.at for item in await all_items(talk)]
            assert len(places) == len(set(places))
        async with world.runtime() as runtime:
            root = await (await runtime.conversation(talk.id)).root()
            turns = await root.log.turns()
            assert all(turn.state != "running" for turn in turns.turns)

    run_seeds(story, 60)


async def test_a_recovery_that_cannot_be_saved_at_once_is_saved_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A1-5."""
    work = Work()
    world = work.world
    async with crashing(world), world.talk() as (_, talk):
        await talk.send("go")
        await settle(0.5)
        world.disk.stop_now()
        await trio.sleep_forever()
    async with world.runtime() as runtime:
        world.disk.fill()
        again = await runtime.open_conversation(talk.id)
        await settle(1)
        with pytest.raises(NotDurable):
            await again.send("too early")
        world.disk.make_room()
        assert (await again.run("now")).text == "finished"
        assert len(await kinds(again, Interruption)) == 1
        items = await all_items(again)
        assert len({item.at for item in items}) == len(items)
        assert (await kinds(again, ToolCall))[0].state == "unknown"
