"""New definitions: running turns keep theirs, everything else takes the new ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from tests.vaala.runtime.driving import idle, snapshot
from tests.vaala.runtime.worlds import World, kinds, settle
from vaala.agent.definition import AgentDefinition
from vaala.definitions import Definitions
from vaala.embed import GivenModels
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.permissions.base import Allow, Decision, Deny, PermissionGate, PermissionRequest
from vaala.runtime import Runtime
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.calls import AgentDetails
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import AssistantMessage, ToolCall
from vaala_protocol.settings import Settings


class Site:
    """A model whose turns pause until they may go on, and say which model and gate they have."""

    def __init__(self) -> None:
        self.go = trio.Event()
        self.world = World([self.model("old")], tools=[self.pause], gate=Gate(Allow("a test")))

    def model(self, name: str) -> FunctionModel:
        async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            said = newest(request)
            if said.prompt == "agent" and not said.results:
                events = answer("", ("spawn_agent", {"task": "pause"}))
            elif said.prompt in ("agent", "pause") and len(said.results) < 2:
                events = answer("", ("pause", {}))
            else:
                events = answer(f"{name}: {' '.join(said.results)}".strip())
            for event in events:
                yield event

        return FunctionModel(respond, name=name)

    async def pause(self) -> str:
        """Wait until it may go on."""
        await self.go.wait()
        return "ran"

    def new(self, runtime: Runtime) -> Definitions:
        """Return definitions with another default model, and a gate that allows nothing."""
        models = GivenModels([self.model("new"), self.model("old")])
        return replace(runtime.definitions, models=models, gate=Gate(Deny("not any more")))


class Gate(PermissionGate):
    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    async def decide(self, request: PermissionRequest) -> Decision:
        return self._decision


async def last_words(talk: ConversationHandle, session_id: str | None = None) -> str:
    item = (await talk.items(session_id=session_id)).items[-1]
    assert isinstance(item, AssistantMessage)
    return item.text


async def test_a_running_turn_keeps_what_it_began_with(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """I3-2, I3-3: the turn is unaffected; the next one has the new ones."""
    site = Site()
    async with site.world.talk() as (runtime, talk):
        old = runtime.definitions
        await talk.send("pause")
        await settle(1)
        runtime.redefine(site.new(runtime))
        site.go.set()
        await idle(talk)
        assert await last_words(talk) == "old: ran ran"
        assert runtime.definitions is not old
        result = await talk.run("pause")
        assert result.text.startswith("new:")
        assert "not any more" in result.text


async def test_a_pinned_model_stays_and_a_new_default_is_taken(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """I3-3."""
    site = Site()
    site.go.set()
    async with site.world.talk() as (runtime, talk):
        pinned = await runtime.create_conversation(
            directory="/w", settings=Settings(model="old", mode="full")
        )
        assert (await pinned.run("hello")).text == "old:"
        runtime.redefine(site.new(runtime))
        fresh = await runtime.create_conversation(directory="/w")
        assert (await fresh.run("hello")).text == "new:"
        assert (await talk.run("hello")).text == "new:"
        assert (await pinned.run("hello")).text == "old:"
        assert (await pinned.options())[0].value == "old"


async def test_agents_of_a_running_turn_have_what_it_has(
    autojump_clock: trio.testing.MockClock,
) -> None:
    site = Site()
    async with site.world.talk() as (runtime, talk):
        await talk.send("pause")
        await settle(1)
        await talk.send("agent", delivery="steer")
        runtime.redefine(site.new(runtime))
        site.go.set()
        await settle(1)
        (child,) = [
            call.details.session_id
            for call in await kinds(talk, ToolCall)
            if isinstance(call.details, AgentDetails)
        ]
        assert await last_words(talk, child) == "old: ran ran"


async def test_an_agent_that_is_gone_is_named(autojump_clock: trio.testing.MockClock) -> None:
    """Also to a message that has waited for its turn."""
    site = Site()
    async with site.world.talk() as (runtime, talk):
        before = runtime.definitions
        await talk.send("pause")
        await talk.send("waits")
        await settle(1)
        other = {"writer": AgentDefinition("writer", "Write.")}
        runtime.redefine(replace(before, agents=other))
        site.go.set()
        await settle(1)
        (session,) = (await snapshot(talk)).sessions
        assert session.turn is not None
        assert session.turn.state == "failed"
        assert session.turn.message == "no agent 'default'; there are: writer"
        status = await talk.status()
        assert (status.status, status.sessions[0].queued) == ("failed", 0)
        with pytest.raises(BadRequest, match="no agent 'default'; there are: writer"):
            await talk.send("more")
        assert (await talk.options())[1].value == "full"
        runtime.redefine(before)
        assert (await talk.run("more")).text == "old:"
