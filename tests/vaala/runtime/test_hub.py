"""Watching all conversations at once: rows, decisions, configuration; throttled, never silent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import idle
from tests.vaala.runtime.worlds import World, crashing, run_seeds, settle
from vaala import limits
from vaala.dao.store import Store
from vaala.hub_stream import RuntimeSubscription
from vaala.models.base import ModelEvent, ModelRequest, TextDelta
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.errors import Unreadable
from vaala_protocol.items import Approval, Question
from vaala_protocol.methods.runtime import (
    ConfigChanged,
    ConfigProblem,
    DecisionPending,
    DecisionSettled,
    PendingDecision,
    RowChanged,
    RowRemoved,
    RuntimeFrame,
    RuntimeSnapshot,
)
from vaala_protocol.pages import ConversationPage, ConversationRow
from vaala_storage.errors import StorageFailed


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    said = newest(request)
    match said.prompt if not said.results else "":
        case "ask":
            events = answer("", ("ask_user", {"question": "Which?"}))
        case "approve":
            events = answer("", ("exec_command", {"command": "make"}))
        case "agent":
            events = answer("", ("spawn_agent", {"task": "approve"}))
        case "stream":
            for _ in range(2_000):
                yield TextDelta("word ")
                await trio.sleep(0.001)
            events = answer(".")
        case _:
            events = answer("fine")
    for event in events:
        yield event


def world() -> World:
    return World(FunctionModel(respond))


class Sidebar:
    """What a client knows of the runtime, from one snapshot and what came after it."""

    def __init__(self) -> None:
        self.rows: dict[str, ConversationRow] = {}
        self.pending: dict[str, PendingDecision] = {}
        self.generation = 0
        self.problems: tuple[ConfigProblem, ...] = ()
        self.position: tuple[str, int] | None = None
        self.snapshots = 0
        self.told: list[str] = []

    def take(self, update: RuntimeSnapshot | RuntimeFrame) -> None:
        if isinstance(update, RuntimeSnapshot):
            self.snapshots += 1
            self.rows = {row.id: row for row in update.conversations}
            self.pending = {one.decision.id: one for one in update.pending}
            self.generation = update.config_generation
            self.problems = update.config_problems
        else:
            assert self.position == (update.epoch, update.seq - 1)
            self._apply(update)
        self.position = (update.epoch, update.seq)

    def _apply(self, frame: RuntimeFrame) -> None:
        self.told.append(type(frame.event).__name__)
        match frame.event:
            case RowChanged(row=row) if row.info.archived:
                self.rows.pop(row.id, None)
            case RowChanged(row=row):
                self.rows[row.id] = row
            case RowRemoved(conversation_id=conversation_id):
                self.rows.pop(conversation_id, None)
            case DecisionPending(pending=pending):
                self.pending[pending.decision.id] = pending
            case DecisionSettled(decision_id=decision_id):
                del self.pending[decision_id]
            case ConfigChanged(generation=generation, problems=problems):
                self.generation, self.problems = generation, problems
            case _:
                raise AssertionError(frame)

    def read(self, updates: RuntimeSubscription) -> None:
        while (update := updates.next_nowait()) is not None:
            self.take(update)

    def same_as(self, snapshot: RuntimeSnapshot) -> bool:
        rows = {row.id: row for row in snapshot.conversations}
        pending = {one.decision.id: one for one in snapshot.pending}
        return (self.rows, self.pending) == (rows, pending)


async def test_what_happens_is_told(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk("ask") as (runtime, talk), runtime.subscribe() as updates:
        sidebar = Sidebar()
        sidebar.read(updates)
        assert (sidebar.rows, sidebar.pending) == ({}, {})
        assert (await talk.run("hello")).text == "fine"
        await settle(1)
        sidebar.read(updates)
        row = sidebar.rows[talk.id]
        assert (row.info.title, row.info.status, row.turns, row.items) == ("hello", "idle", 1, 2)
        assert row.snippet == "fine"
        await talk.update(title="Greetings")
        await settle(1)
        sidebar.read(updates)
        assert sidebar.rows[talk.id].info.title == "Greetings"
        other = await runtime.create_conversation(directory="/w")
        await other.run("hello")
        await settle(1)
        sidebar.read(updates)
        assert set(sidebar.rows) == {talk.id, other.id}
        await other.update(archived=True)
        await settle(1)
        await runtime.delete_conversation(talk.id)
        sidebar.read(updates)
        assert sidebar.rows == {}
        assert sidebar.told.count("RowRemoved") == 1
        assert sidebar.snapshots == 1


async def test_an_empty_conversation_is_not_listed(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (runtime, talk), runtime.subscribe() as updates:
        sidebar = Sidebar()
        await talk.update(title="Nothing yet")
        await settle(1)
        sidebar.read(updates)
        assert sidebar.rows == {}


async def test_a_streaming_turn_does_not_flood(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (runtime, talk), runtime.subscribe() as updates:
        sidebar = Sidebar()
        sidebar.read(updates)
        began = trio.current_time()
        await talk.run("stream")
        seconds = trio.current_time() - began
        await settle(1)
        assert seconds > 1.9
        sidebar.read(updates)
        assert sidebar.told == ["RowChanged"] * len(sidebar.told)
        assert 2 <= len(sidebar.told) <= 5  # began, streams, ended
        assert sidebar.rows[talk.id].info.status == "idle"


async def test_changes_of_one_conversation_come_at_most_once_in_a_period(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (runtime, talk), runtime.subscribe() as updates:
        await talk.run("hello")
        await settle(1)
        sidebar = Sidebar()
        sidebar.read(updates)
        for number in range(200):
            await talk.update(title=f"Title {number}")
            await trio.sleep(0.01)
        await settle(1)
        sidebar.read(updates)
        assert sidebar.rows[talk.id].info.title == "Title 199"
        assert len(sidebar.told) <= 2 / limits.ROWS_PERIOD_S + 3


async def test_decisions_of_all_conversations_wait_in_one_place(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk("ask") as (runtime, talk), runtime.subscribe() as updates:
        sidebar = Sidebar()
        sidebar.read(updates)
        other = await runtime.create_conversation(directory="/w", title="Other")
        await talk.send("agent")
        await other.send("ask")
        await settle(1)
        sidebar.read(updates)
        by_kind = {type(one.decision): one for one in sidebar.pending.values()}
        approval, question = by_kind[Approval], by_kind[Question]
        assert (approval.conversation_id, approval.title) == (talk.id, "Run make")
        assert approval.session_id not in ("", talk.id)
        assert approval.conversation_title == "agent"
        assert (question.conversation_id, question.conversation_title) == (other.id, "Other")
        async with runtime.subscribe() as late:
            first = late.next_nowait()
            assert isinstance(first, RuntimeSnapshot)
            assert sidebar.same_as(first)
        await other.answer_question(question.decision.id, "this")
        await talk.interrupt()
        await settle(1)
        sidebar.read(updates)
        # A child goes on when the turn that has started it had ended before the interrupt.
        for one in list(sidebar.pending.values()):
            await talk.interrupt(session_id=one.session_id)
        await settle(1)
        sidebar.read(updates)
        assert sidebar.pending == {}
        assert sidebar.told.count("DecisionPending") == sidebar.told.count("DecisionSettled") == 2


async def test_what_waits_in_a_conversation_that_crashes_waits_no_more(
    autojump_clock: trio.testing.MockClock, errors_logged: list[str]
) -> None:
    async with world().talk() as (runtime, talk), runtime.subscribe() as updates:
        sidebar = Sidebar()
        await talk.send("ask")
        await settle(1)
        sidebar.read(updates)
        assert len(sidebar.pending) == 1
        session = (await runtime.conversation(talk.id)).sessions[talk.id]
        session.report("no message")  # type: ignore[arg-type] # a bug, as it might be
        await settle(1)
        sidebar.read(updates)
        assert sidebar.pending == {}
        assert errors_logged
        assert (await talk.run("hello")).text == "fine"
        await settle(1)
        sidebar.read(updates)
        assert sidebar.rows[talk.id].info.status == "idle"


async def test_the_configuration_is_told_and_kept(autojump_clock: trio.testing.MockClock) -> None:
    problem = ConfigProblem(file="models.yaml", line=3, text="no such key")
    async with world().runtime() as runtime:
        runtime.hub.config_changed(1)
        async with runtime.subscribe() as updates:
            sidebar = Sidebar()
            sidebar.read(updates)
            assert (sidebar.generation, sidebar.problems) == (1, ())
            runtime.hub.config_changed(1, [problem])
            sidebar.read(updates)
            assert (sidebar.generation, sidebar.problems) == (1, (problem,))
        async with runtime.subscribe() as updates:
            sidebar.read(updates)
            assert sidebar.problems == (problem,)


async def test_a_slow_reader_gets_a_snapshot(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SUBSCRIPTION_FRAMES_MAX", 5)
    async with world().runtime() as runtime, runtime.subscribe() as updates:
        sidebar = Sidebar()
        sidebar.read(updates)
        for generation in range(10):
            runtime.hub.config_changed(generation)
        sidebar.read(updates)
        assert (sidebar.snapshots, sidebar.generation) == (2, 9)


def test_a_sidebar_knows_what_a_later_snapshot_shows() -> None:
    async def story(random: Random) -> None:
        async with world().talk("ask") as (runtime, first), runtime.subscribe() as updates:
            sidebar = Sidebar()
            talks = [first]
            for _ in range(12):
                await trio.sleep(random.choice((0, 0.1, 0.3)))
                if random.random() < 0.3:
                    sidebar.read(updates)
                if not talks or random.random() < 0.3:
                    talks.append(await runtime.create_conversation(directory="/w"))
                talk = random.choice(talks)
                match random.randrange(6):
                    case 0 | 1 | 2:
                        await talk.send(random.choice(("ask", "approve", "hello", "agent")))
                    case 3:
                        await talk.interrupt()
                    case 4:
                        await talk.update(title=str(random.random()), archived=None)
                    case _:
                        talks.remove(talk)
                        await runtime.delete_conversation(talk.id)
            for talk in talks:
                await talk.interrupt()
            await settle(2)
            sidebar.read(updates)
            assert sidebar.same_as(runtime.hub.snapshot())

    run_seeds(story, 30)


async def test_rows_are_forgotten_when_nobody_watches(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (runtime, talk):
        async with runtime.subscribe() as updates:
            await anext(updates)
        await talk.run("hello")
        await settle(2 * limits.RING_KEPT_S)
        assert runtime.hub._rows is None
        async with runtime.subscribe() as updates:
            sidebar = Sidebar()
            sidebar.read(updates)
            assert sidebar.rows[talk.id].snippet == "fine"
            await talk.run("again")
            await settle(1)
            sidebar.read(updates)
            assert sidebar.rows[talk.id].turns == 2


async def test_a_restart_shows_no_running_conversation(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H9-2, in the list."""
    here = world()
    async with crashing(here), here.talk() as (_, talk):
        await talk.send("ask")
        await settle(1)
        here.disk.cut_power()
    async with here.runtime() as runtime, runtime.subscribe() as updates:
        sidebar = Sidebar()
        sidebar.read(updates)
        assert sidebar.rows[talk.id].info.status == "idle"
        assert sidebar.pending == {}


async def test_a_list_that_cannot_be_read_is_told(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world().talk() as (runtime, talk):

        async def fails(self: Store, limit: int) -> ConversationPage:
            raise StorageFailed("the disk is gone")

        with monkeypatch.context() as patch:
            patch.setattr(type(runtime.store), "list", fails)
            with pytest.raises(Unreadable, match="the disk is gone"):
                async with runtime.subscribe():
                    pytest.fail("there is nothing to watch")
        async with runtime.subscribe() as updates:
            assert isinstance(await anext(updates), RuntimeSnapshot)
            await talk.send("hello")
            await idle(talk)


async def test_watching_ends_with_the_runtime(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        reasons: list[str | None] = []

        async def watch(runtime_subscription: RuntimeSubscription) -> None:
            async for _ in runtime_subscription:
                pass
            reasons.append(runtime_subscription.reason)

        async with world().runtime() as runtime:
            watching = runtime.subscribe()
            updates = await watching.__aenter__()
            nursery.start_soon(watch, updates)
            await settle()
        await settle()
        assert reasons == ["closing"]
        await watching.__aexit__(None, None, None)


@pytest.mark.parametrize("fault", [StorageFailed("the disk is gone"), RuntimeError("a bug")])
async def test_rows_that_could_not_be_read_are_told_later(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """Although nothing else changes; and the index is not asked all the time meanwhile."""
    asked: list[float] = []

    async def fails(self: Store, ids: Sequence[str]) -> dict[str, ConversationRow]:
        asked.append(trio.current_time())
        raise fault

    async with world().talk() as (runtime, talk), runtime.subscribe() as updates:
        await talk.run("hello")
        await settle(1)
        sidebar = Sidebar()
        sidebar.read(updates)
        with monkeypatch.context() as patch:
            patch.setattr(type(runtime.store), "rows", fails)
            await talk.update(title="Greetings")
            await settle(60)
        assert 3 <= len(asked) <= 12
        await settle(limits.ROWS_RETRY_MAX_S)
        sidebar.read(updates)
        assert sidebar.rows[talk.id].info.title == "Greetings"
