"""What clients do with the sessions of a conversation: by id, also those of agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import snapshot
from tests.vaala.runtime.worlds import World, settle
from vaala.agent.definition import AgentDefinition
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest, ProviderBlob, TextDelta
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.content import text_of
from vaala_protocol.errors import BadRequest, NotFound
from vaala_protocol.events import Frame, ItemChanged
from vaala_protocol.items import AssistantMessage, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import InputInfo, UserInput


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    said = newest(request)
    match said.prompt if not said.results else "":
        case "agent":
            for event in answer("", ("spawn_agent", {"task": "work"})):
                yield event
        case "work":
            yield TextDelta("half")
            await trio.sleep_forever()
        case _:
            for event in answer("fine"):
                yield event


def words(waiting: InputInfo) -> str:
    assert isinstance(waiting.source, UserInput)
    return text_of(waiting.source.content)


def world() -> World:
    return World(FunctionModel(respond))


async def child_of(talk: ConversationHandle) -> str:
    await talk.run("agent")
    await settle(1)
    child = (await talk.status()).sessions[-1]
    assert child.id != talk.id
    return child.id


async def test_a_session_of_an_agent_is_reached_by_its_id(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (_, talk):
        child = await child_of(talk)
        assert not await talk.interrupt()
        first = await talk.send("one", session_id=child)
        await talk.send("two", session_id=child)
        await talk.edit_input(first.id, "first", session_id=child)
        await talk.move_input(first.id, session_id=child)
        queue = (await snapshot(talk)).sessions[-1].queue
        assert [words(waiting) for waiting in queue] == ["two", "first"]
        with pytest.raises(NotFound):  # it waits in another session
            await talk.withdraw_input(first.id)
        await talk.withdraw_input(first.id, session_id=child)
        await talk.configure(Settings(mode="read-only"), session_id=child)
        assert await talk.interrupt(session_id=child)
        await settle(1)
        assert (await snapshot(talk)).sessions[-1].queue[0].state == "held"
        await talk.resume(session_id=child)
        await settle(1)
        page = await talk.items(session_id=child)
        said = [text_of(item.content) for item in page.items if isinstance(item, UserMessage)]
        assert said == ["work", "two"]
        assert (await snapshot(talk)).sessions[0].settings.mode == "full"


async def test_an_unknown_session_is_named(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (_, talk):
        uses: list[Any] = [
            lambda: talk.send("x", session_id="nobody"),
            lambda: talk.interrupt(session_id="nobody"),
            lambda: talk.resume(session_id="nobody"),
            lambda: talk.edit_input("i", "x", session_id="nobody"),
            lambda: talk.withdraw_input("i", session_id="nobody"),
            lambda: talk.move_input("i", session_id="nobody"),
            lambda: talk.configure(Settings(), session_id="nobody"),
            lambda: talk.options(session_id="nobody"),
            lambda: talk.items(session_id="nobody"),
        ]
        for use in uses:
            with pytest.raises(NotFound, match="nobody"):
                await use()
        assert await talk.interrupt(session_id=talk.id) is False  # the root has an id, too


async def test_the_transcript_of_an_agent_outlives_its_session(
    autojump_clock: trio.testing.MockClock,
) -> None:
    here = world()
    async with here.talk() as (_, talk):
        child = await child_of(talk)
        await talk.interrupt(session_id=child)
        await settle(1)
        await talk.run("go on")  # the result of the agent was taken
        await settle(60)
        assert len((await talk.status()).sessions) == 1
        page = await talk.items(session_id=child)
        texts = [item.text for item in page.items if isinstance(item, AssistantMessage)]
        assert texts == ["half"]
        with pytest.raises(NotFound, match=child):
            await talk.send("more", session_id=child)


async def test_the_status_tells_what_runs_and_waits(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (runtime, talk), talk.subscribe():
        assert not runtime.busy
        await child_of(talk)
        assert runtime.busy
        (status,) = runtime.status()
        assert status == await talk.status()
        assert (status.title, status.status, status.subscribers) == ("agent", "running", 1)
        root, child = status.sessions
        assert (root.turn_id, root.parent, child.parent) == (None, None, talk.id)
        assert child.turn_id is not None
        assert child.turn_started_at is not None
        assert child.steps == 1
        assert [wait.subject for wait in child.waits] == ["function"]
        await talk.interrupt(session_id=child.id)
        await settle(1)
        assert not runtime.busy


async def test_what_can_be_set_is_listed_with_what_is_in_force(
    autojump_clock: trio.testing.MockClock,
) -> None:
    agent = AgentDefinition("default", "Work.", settings=Settings(effort="low"))
    models = [FunctionModel(respond, name="one"), FunctionModel(respond, name="two")]
    async with World(models, agents={"default": agent}).talk("ask") as (_, talk):
        model, mode, effort = await talk.options()
        assert (model.id, model.value, model.open) == ("model", "one", True)
        assert [choice.value for choice in model.choices] == ["one", "two"]
        assert (mode.id, mode.value, mode.open) == ("mode", "ask", False)
        modes = ["read-only", "ask", "auto-edit", "full"]
        assert [choice.value for choice in mode.choices] == modes
        assert (effort.id, effort.value) == ("effort", "low")
        await talk.configure(Settings(model="two", effort="high", mode="full"))
        assert [option.value for option in await talk.options()] == ["two", "full", "high"]
        await talk.configure(Settings(model="three"))
        assert (await talk.options())[0].value == "three"  # what a turn would refuse is shown
        result = await talk.run("hello")
        assert result.turn.state == "failed"


async def test_opaque_data_of_providers_stays_inside(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def signed(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield TextDelta("signed")
        yield ProviderBlob("message", {"signature": "secret"})
        for event in answer():
            yield event

    async with World(FunctionModel(signed)).talk() as (runtime, talk):
        async with talk.subscribe() as updates:
            seen: list[Any] = [await anext(updates)]
            await talk.run("hello")
            while (update := updates.next_nowait()) is not None:
                seen.append(update)
            assert "secret" not in repr(seen)
            told = [u.event.item for u in seen if isinstance(u, Frame)
                    and isinstance(u.event, ItemChanged)]  # fmt: skip
            assert any(isinstance(item, AssistantMessage) for item in told)
        assert "secret" not in repr(await snapshot(talk))
        assert "secret" not in repr(await talk.items())
        conversation = await runtime.conversation(talk.id)
        stored = await conversation.sessions[talk.id].log.items()
        assert "secret" in repr(stored)


async def test_a_message_may_hold_blocks(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (_, talk):
        with pytest.raises(BadRequest, match="empty"):
            await talk.send([])
