"""Interrupts: addressed, immediate, in every state, down the tree; and always usable afterwards."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import idle, pending_approval, snapshot
from tests.vaala.runtime.worlds import World, all_items, kinds, run_seeds, settle
from vaala.models.base import ModelEvent, ModelFailure, ModelRequest, TextDelta
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.calls import AgentDetails
from vaala_protocol.content import text_of
from vaala_protocol.items import Interruption, ToolCall


async def hang() -> str:
    """Never return."""
    await trio.sleep_forever()
    raise AssertionError


async def pause() -> str:
    """Take a second."""
    await trio.sleep(1)
    return "paused"


CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "tool": [("hang", {}), ("hang", {})],
    "disk": [("pause", {})],
    "approval": [("exec_command", {"command": "x"})],
    "question": [("ask_user", {"question": "Which one?"})],
}


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    said = newest(request)
    match said.prompt if not said.results else "":
        case "first byte":
            await trio.sleep_forever()
        case "streaming":
            yield TextDelta("half")
            await trio.sleep_forever()
        case prompt if prompt in CALLS:
            for event in answer("", *CALLS[prompt]):
                yield event
        case "back-off":
            raise ModelFailure("overloaded", "busy", retryable=True, retry_after_s=100)
        case _:
            for event in answer("fine"):
                yield event


STATES = ("first byte", "streaming", "tool", "approval", "question", "back-off", "disk")


@pytest.mark.parametrize("state", STATES)
def test_interrupt_in_every_state_leaves_it_usable(state: str) -> None:
    """H4-1, H4-3."""

    async def story(random: Random) -> None:
        world = World(FunctionModel(respond), tools=[hang, pause])
        async with world.talk("ask") as (_, talk):
            await talk.send(state)
            if state == "disk":
                world.disk.fill()
            await settle(2 + random.random())
            began = trio.current_time()
            assert await talk.interrupt()
            await talk.interrupt()
            if state == "disk":
                await settle(40)
                world.disk.make_room()
                began = trio.current_time()
            await idle(talk)
            assert trio.current_time() - began < (16 if state == "disk" else 2)
            assert not await talk.interrupt()
            turn = (await snapshot(talk)).sessions[0].turn
            assert turn is not None
            assert (turn.state, turn.interrupted_by) == ("interrupted", "user")
            assert len(await kinds(talk, Interruption)) == 1
            assert not await talk.interrupt(turn.id)
            result = await talk.run("again")
            assert (result.turn.state, result.text) == ("completed", "fine")

    run_seeds(story, 10)


async def test_the_addressed_turn_alone_is_interrupted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H4-3: the id of a turn that has ended never hits the one that runs now."""
    async with World(FunctionModel(respond)).talk() as (_, talk):
        first = await talk.run("hello")
        await talk.send("first byte")
        await settle()
        assert not await talk.interrupt(first.turn.id)
        running = (await snapshot(talk)).sessions[0].turn
        assert running is not None
        assert running.state == "running"
        assert await talk.interrupt(running.id)


async def test_interrupt_with_an_approval_withdraws_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with (
        World(FunctionModel(respond)).talk("ask") as (_, talk),
        talk.subscribe() as updates,
    ):
        await talk.send("approval")
        asked = await pending_approval(updates)
        await talk.answer_approval(asked.id, "reject", by="me", interrupt=True)
        await idle(talk)
        turn = (await snapshot(talk)).sessions[0].turn
        assert turn is not None
        assert turn.state == "interrupted"
        assert [call.state for call in await kinds(talk, ToolCall)] == ["denied"]


class Family:
    """A model whose root spawns children that work until they are interrupted, or answer."""

    def __init__(self, *, child: str, after: str = "done") -> None:
        self.child = child
        self.after = after
        self.root_id = ""

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        said = newest(request)
        for event in await self._events(said.prompt, said.results):
            yield event

    async def _events(self, prompt: str, results: Sequence[str]) -> list[ModelEvent]:
        spawned = [text for text in results if text.startswith("Started session ")]
        match prompt:
            case "spawn":
                if not spawned:
                    task = {"task": self.child}
                    return answer("", ("spawn_agent", task), ("spawn_agent", task))
                if self.after == "wait" and len(results) == 2:
                    child_ids = [text.split()[-1].rstrip(".") for text in spawned]
                    return answer("", *(("wait_agent", {"session_id": one}) for one in child_ids))
                if self.after == "hang":
                    await trio.sleep_forever()
                return answer("done")
            case "work for ever":
                await trio.sleep_forever()
            case "work":
                await trio.sleep(5)
                return answer("the child's result")
            case "wait for the root" if not results:
                return answer("", ("wait_agent", {"session_id": self.root_id}))
            case "wait for the root":
                return answer(f"told: {results[-1]}")
            case _:
                pass
        return answer("fine")


def family(**options: str) -> tuple[Family, World]:
    made = Family(**options)
    return made, World(FunctionModel(made.respond))


def test_interrupt_reaches_the_children_that_the_turn_spawned() -> None:
    async def story(random: Random) -> None:
        _, world = family(child="work for ever", after="wait")
        async with world.talk() as (runtime, talk):
            await talk.send("spawn")
            await settle(1)
            conversation = await runtime.conversation(talk.id)
            assert len(conversation.sessions) == 3
            assert await talk.interrupt()
            await idle(talk)
            await settle(1)
            for session in conversation.sessions.values():
                assert session.turn is None
                assert session.state.head.turn is not None
                assert session.state.head.turn.state == "interrupted"
            assert len(conversation.sessions) == 3  # they stay open
            assert (await talk.run("hello")).text == "fine"

    run_seeds(story, 20)


def test_a_spawn_that_races_with_an_interrupt_leaves_nothing_running() -> None:
    async def story(random: Random) -> None:
        _, world = family(child="work for ever", after="hang")
        async with world.talk() as (runtime, talk):
            await talk.send("spawn")
            for _ in range(random.randrange(60)):
                await trio.lowlevel.checkpoint()
            await talk.interrupt()
            await settle(5)
            conversation = await runtime.conversation(talk.id)
            for session in conversation.sessions.values():
                assert session.turn is None, f"{session} still runs"
            assert (await talk.run("hello")).text == "fine"

    run_seeds(story, 60)


def test_a_wait_that_would_never_end_is_an_error_result() -> None:
    async def story(random: Random) -> None:
        made, world = family(child="wait for the root", after="wait")
        async with world.talk() as (_, talk):
            made.root_id = talk.id
            result = await talk.run("spawn")
            assert result.turn.state == "completed"
            waits = [
                call
                for call in await kinds(talk, ToolCall)
                if isinstance(call.details, AgentDetails) and call.details.action == "wait"
            ]
            assert len(waits) == 2
            assert trio.current_time() < 60  # nobody sat through a time-out
            for call in waits:
                assert call.state in ("done", "error")
                assert "would never end" in text_of(call.result)

    run_seeds(story, 20)


async def test_a_conversation_of_many_turns_pages_the_same_after_interrupts(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with World(FunctionModel(respond), tools=[hang]).talk() as (_, talk):
        for prompt in ("tool", "streaming", "x", "tool"):
            await talk.send(prompt)
            await settle(1)
            await talk.interrupt()
        items = await all_items(talk)
        assert [item.at for item in items] == sorted({item.at for item in items})
