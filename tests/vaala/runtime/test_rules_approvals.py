"""Approvals: by id, answered once, in every snapshot; a rule answers its identical likes alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import idle, pending_approval, snapshot
from tests.vaala.runtime.worlds import World, crashing, kinds, run_seeds, settle
from vaala.changes import replace
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala.tools.function import tool
from vaala_protocol.errors import BadRequest, NotPending
from vaala_protocol.items import Approval, ToolCall
from vaala_protocol.settings import Settings


class Desk:
    """A tool that needs a decision, and how often it ran."""

    def __init__(self, *prompts: str) -> None:
        self.ran: list[str] = []
        self.prompts = prompts
        self.world = World(FunctionModel(self.respond), tools=[tool(self.act, access="execute")])

    async def act(self, what: str) -> str:
        """Do it."""
        self.ran.append(what)
        return what

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        said = newest(request)
        if said.prompt == "spawn" and not said.results:
            task = {"task": "child"}
            events = answer("", ("spawn_agent", task), ("spawn_agent", task))
        elif said.prompt == "commands" and not said.results:
            commands = [("exec_command", {"command": one}) for one in self.prompts]
            events = answer("", *commands)
        elif said.prompt in ("act", "child") and not said.results:
            events = answer("", ("act", {"what": said.prompt}))
        elif said.prompt == "twice" and len(said.results) < 2:
            events = answer("", ("act", {"what": f"{len(said.results)}"}))
        else:
            events = answer("done")
        for event in events:
            yield event


def test_answers_race_and_one_wins() -> None:
    """H3-2."""

    async def story(random: Random) -> None:
        desk = Desk()
        async with desk.world.talk("ask") as (_, talk), talk.subscribe() as updates:
            await talk.send("act")
            asked = await pending_approval(updates)
            told: list[str] = []

            async def client(option: str) -> None:
                for _ in range(random.randrange(4)):
                    await trio.lowlevel.checkpoint()
                try:
                    await talk.answer_approval(asked.id, option, by=option)
                except NotPending:
                    told.append("too late")
                else:
                    told.append(option)

            async with trio.open_nursery() as nursery:
                for option in ("allow", "reject", "allow"):
                    nursery.start_soon(client, option)
            await idle(talk)
            assert told.count("too late") == 2
            (winner,) = [option for option in told if option != "too late"]
            (call,) = await kinds(talk, ToolCall)
            assert call.state == ("done" if winner == "allow" else "denied")
            assert len(desk.ran) == (winner == "allow")
            (approval,) = await kinds(talk, Approval)
            assert approval.answer.by == winner

    run_seeds(story, 100)


async def test_a_rule_for_the_session_answers_identical_requests_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H3-7."""
    desk = Desk("git status", "git status && rm x", "git status", "git statusx")
    async with desk.world.talk("ask") as (_, talk):
        await talk.send("commands")
        await settle()
        asked = await kinds(talk, Approval)
        assert len(asked) == 4
        await talk.answer_approval(asked[0].id, "allow-session")
        await settle(1)
        started = [process.command.shell for process in desk.world.executor.workspace.processes]
        assert started == ["git status", "git status"]
        states = [one.state for one in await kinds(talk, Approval)]
        assert states == ["answered", "pending", "answered", "pending"]
        for one in (asked[1], asked[3]):
            await talk.answer_approval(one.id, "reject")
        for process in desk.world.executor.workspace.processes:
            process.exits()
        await idle(talk)
        calls = await kinds(talk, ToolCall)
        assert [one.state for one in calls] == ["done", "denied", "done", "denied"]


async def test_what_is_allowed_for_good_is_written_down_before_it_runs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    desk, kept = Desk("git log -1", "git log -2", "ls"), list[str]()

    async def keep(rule: str) -> None:
        if kept:
            raise BadRequest("the file is broken")
        kept.append(rule)

    async with desk.world.talk("ask") as (runtime, talk):
        runtime.redefine(replace(runtime.definitions, keep_rule=keep))
        await talk.send("commands")
        await settle()
        first, _, third = await kinds(talk, Approval)
        always = "allow-beginning-config"
        await talk.answer_approval(first.id, always)
        assert kept == ["exec_command(git log:*)"]
        with pytest.raises(BadRequest, match="the file is broken"):
            await talk.answer_approval(third.id, always)
        states = [one.state for one in await kinds(talk, Approval)]
        assert states == ["answered", "answered", "pending"]
        await talk.answer_approval(third.id, "reject-session")
        for process in desk.world.executor.workspace.processes:
            process.exits()
        await idle(talk)
        await talk.send("commands")
        for process in desk.world.executor.workspace.processes:
            process.exits()
        await idle(talk)
        calls = await kinds(talk, ToolCall)
        assert [one.state for one in calls[3:]] == ["done", "done", "denied"]


async def test_two_agents_ask_at_once_and_each_gets_its_own_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H3-4."""
    desk = Desk()
    async with desk.world.talk("ask") as (runtime, talk):
        await talk.send("spawn")
        await settle(1)
        seen = await snapshot(talk)
        asked = [
            item
            for session in seen.sessions
            for item in session.items
            if isinstance(item, Approval) and item.state == "pending"
        ]
        assert len(asked) == 2
        await talk.answer_approval(asked[0].id, "reject")
        await settle(1)
        assert desk.ran == []
        sessions = (await runtime.conversation(talk.id)).sessions
        assert asked[1].id in sessions[asked[1].session_id].state.open
        await talk.answer_approval(asked[1].id, "allow")
        await settle(1)
        assert desk.ran == ["child"]


async def test_a_change_of_the_mode_applies_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    desk = Desk()
    async with desk.world.talk("ask") as (_, talk), talk.subscribe() as updates:
        await talk.send("twice")
        first = await pending_approval(updates)
        await talk.configure(Settings(mode="full"))
        await talk.answer_approval(first.id, "allow")
        await idle(talk)
        assert desk.ran == ["0", "1"]  # the second call of the same turn asks nobody
        assert len(await kinds(talk, Approval)) == 1


async def _ask(talk: ConversationHandle) -> Approval:
    await talk.send("act")
    await settle(1)
    found: list[Approval] = await kinds(talk, Approval)
    return found[-1]


async def test_an_approval_does_not_outlive_the_process(
    autojump_clock: trio.testing.MockClock,
) -> None:
    desk = Desk()
    world = desk.world
    async with crashing(world), world.talk("ask") as (_, talk):
        asked = await _ask(talk)
        world.disk.cut_power()
    async with world.runtime() as runtime:
        reopened = await runtime.open_conversation(talk.id)
        with pytest.raises(NotPending):
            await reopened.answer_approval(asked.id, "allow")
        assert [one.state for one in await kinds(reopened, Approval)] == ["expired"]
        assert [one.state for one in await kinds(reopened, ToolCall)] == ["cancelled"]
        assert (await reopened.run("hello")).text == "done"
    assert desk.ran == []
