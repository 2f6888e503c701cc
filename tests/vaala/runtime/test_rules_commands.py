"""Background commands: their end is told once, and lost ones are told after a restart."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import snapshot
from tests.vaala.runtime.worlds import World, crashing, kinds, settle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.content import text_of
from vaala_protocol.items import CommandEnd, ToolCall


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    said = newest(request)
    events = answer("fine")
    if said.prompt == "start" and not said.results:
        events = answer("", ("exec_command", {"command": "serve", "background": True}))
    elif said.prompt.startswith("read ") and not said.results:
        events = answer("", ("write_stdin", {"command_id": said.prompt.split()[1]}))
    for event in events:
        yield event


@pytest.fixture
def world() -> World:
    return World(FunctionModel(respond))


async def test_the_end_of_a_command_is_told_once(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """D7-1."""
    async with world.talk() as (_, talk):
        await talk.run("start")
        process = world.executor.workspace.last
        (info,) = (await snapshot(talk)).sessions[0].commands
        process.say(b"ready\n")
        await settle(2)
        process.exits(0)
        await settle(2)
        assert (await snapshot(talk)).sessions[0].commands == ()
        await talk.run("hello")
        await talk.run("hello")
        (told,) = await kinds(talk, CommandEnd)
        assert (told.command_id, told.exit_code, told.lost) == (info.id, 0, False)
        assert "ready" in told.output
    async with world.runtime() as runtime:
        again = await runtime.open_conversation(talk.id)
        await again.run("hello")
        assert len(await kinds(again, CommandEnd)) == 1


async def test_output_is_read_without_gap_or_repeat_and_after_the_end(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """D7-2."""
    async with world.talk() as (_, talk):
        await talk.run("start")
        process = world.executor.workspace.last
        (info,) = (await snapshot(talk)).sessions[0].commands
        for text in ("one ", "two ", "three"):
            process.say(text.encode())
            await settle(1)
            if text == "three":
                process.exits(3)
                await settle(1)
            await talk.run(f"read {info.id}")
        outputs = [
            text_of(call.result)
            for call in await kinds(talk, ToolCall)
            if call.name == "write_stdin"
        ]
        assert len(outputs) == 3
        for expected, output in zip(("one", "two", "three"), outputs, strict=True):
            found = [word for word in ("one", "two", "three") if word in output]
            assert found == [expected]


@pytest.mark.parametrize("end", ["closed", "killed", "power lost"])
async def test_a_command_that_the_runtime_left_is_told_as_lost_once(
    world: World, end: str, autojump_clock: trio.testing.MockClock
) -> None:
    """D7-3."""
    async with crashing(world, power_was_lost=end == "power lost"), world.talk() as (_, talk):
        await talk.run("start")
        await settle(1)
        if end != "closed":
            world.disk.cut_power()
            await talk.send("never")
    assert world.executor.workspace.live == 0
    for _ in range(2):
        async with world.runtime() as runtime:
            again = await runtime.open_conversation(talk.id)
            await settle(1)
            assert (await snapshot(again)).sessions[0].commands == ()
            await again.run("hello")
            (told,) = await kinds(again, CommandEnd)
            assert told.lost
            assert told.command == "serve"
