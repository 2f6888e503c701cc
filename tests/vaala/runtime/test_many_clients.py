"""Many clients on one conversation: they come, drop and steer, and all know the same."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import idle, pending_approval, snapshot
from tests.vaala.runtime.worlds import World, kinds, run_seeds, settle
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest, TextDelta
from vaala.stream import QueueBudget, Update
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala.testing.projection import Projection
from vaala.tools.function import tool
from vaala_protocol.base import encode
from vaala_protocol.content import text_of
from vaala_protocol.errors import NotPending
from vaala_protocol.events import Frame, ItemChanged
from vaala_protocol.items import Approval, ToolCall, UserMessage
from vaala_protocol.methods.conversation import Position
from vaala_protocol.pages import ListQuery
from vaala_protocol.settings import Settings
from vaala_protocol.state import Snapshot, UserInput

WORDS = 2_000


class Desk:
    """An agent that streams, runs tools side by side, asks for an approval, and hangs."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        tools = [tool(self.note), tool(self.act, access="execute")]
        self.world = World(FunctionModel(self.respond), tools=tools)

    async def note(self, what: str) -> str:
        """Write something down."""
        await trio.sleep(0.5)
        return what

    async def act(self, what: str) -> str:
        """Do it."""
        self.ran.append(what)
        return what

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        said = newest(request)
        match (said.prompt, len(said.results)):
            case "work", 0:
                for number in range(WORDS):
                    yield TextDelta(f"{number} ")
                    if number % 20 == 0:
                        await trio.sleep(0.01)
                calls = ("note", {"what": "a"}), ("note", {"what": "b"}), ("act", {"what": "c"})
                events = answer("", *calls)
            case ("work", 3) | ("hang", _):
                yield TextDelta("Now I hang.")
                await trio.sleep_forever()
            case ("act", 0) | ("act twice", 0):
                events = answer("", ("act", {"what": "first"}))
            case "act twice", 1:
                events = answer("", ("act", {"what": "second"}))
            case "note", 0:
                events = answer("", ("note", {"what": "x"}))
            case _:
                events = answer("done")
        for event in events:
            yield event


class Viewer:
    """A client with a projection; it may drop at any update and goes on from where it was."""

    def __init__(self, talk: ConversationHandle, budget: QueueBudget | None = None) -> None:
        self.talk = talk
        self.known = Projection()
        self.drops = 0
        self.resumed = 0
        self._position: Position | None = None
        self._budget = budget

    async def follow(self, random: Random, drops: int) -> None:
        """Read until cancelled."""
        while True:
            reading = random.randrange(1, 10) if self.drops < drops else None
            async with self.talk.subscribe(self._position, budget=self._budget) as updates:
                self.resumed += updates.resumed
                async for update in updates:
                    self._take(update)
                    if reading is not None and (reading := reading - 1) == 0:
                        break
            self.drops += 1
            await trio.sleep(random.choice((0, 0, 0.01, 0.5)))

    def _take(self, update: Update) -> None:
        self.known.apply(update)
        self._position = Position(epoch=update.epoch, seq=update.seq)

    @property
    def state(self) -> bytes:
        return encode(self.known.state)


def test_viewers_that_drop_know_what_one_that_stays_knows() -> None:
    """H1-1, H1-5: 2,000 deltas, parallel tools, an approval and an interrupt."""

    async def story(random: Random) -> None:
        desk = Desk()
        async with desk.world.talk("ask") as (_, talk), trio.open_nursery() as nursery:
            stays, shares = Viewer(talk), Viewer(talk, QueueBudget(20_000))
            drops = [Viewer(talk) for _ in range(2)]
            nursery.start_soon(stays.follow, random, 0)
            nursery.start_soon(shares.follow, random, 0)
            for viewer in drops:
                nursery.start_soon(viewer.follow, random, 50)
            async with talk.subscribe() as updates:
                await talk.send("work")
                asked = await pending_approval(updates)
                await talk.answer_approval(asked.id, "allow")
                await settle(2)
                await talk.interrupt()
                await idle(talk)
            await settle(5)
            states = {viewer.state for viewer in (stays, shares, *drops)}
            assert states == {encode(await snapshot(talk))}
            nursery.cancel_scope.cancel()
            assert all(viewer.drops >= 5 for viewer in drops)
            assert all(viewer.resumed > viewer.drops / 2 for viewer in drops)

    run_seeds(story, 15)


async def test_an_approval_outlives_the_client_that_saw_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H3-1."""
    desk = Desk()
    async with desk.world.talk("ask") as (_, talk):
        async with talk.subscribe() as updates:
            await talk.send("act")
            asked = await pending_approval(updates)
        await settle(3600)
        seen = await snapshot(talk)
        assert asked in seen.sessions[0].items
        await talk.answer_approval(asked.id, "allow", by="another client")
        await idle(talk)
        assert desk.ran == ["first"]


async def test_an_interrupt_takes_the_approval_from_every_client(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H3-3."""
    desk = Desk()
    async with desk.world.talk("ask") as (runtime, talk), trio.open_nursery() as nursery:
        viewers = [Viewer(talk) for _ in range(3)]
        for viewer in viewers:
            nursery.start_soon(viewer.follow, Random(1), 0)
        await talk.send("act")
        await settle(1)
        (asked,) = await kinds(talk, Approval)
        await talk.interrupt()
        await settle(1)
        for viewer in viewers:
            shown = [i for i in viewer.known.state.sessions[0].items if isinstance(i, Approval)]
            assert [one.state for one in shown] == ["withdrawn"]
        for _ in range(3):
            with pytest.raises(NotPending):
                await talk.answer_approval(asked.id, "allow")
        assert runtime.hub.inbox.pending == ()
        assert desk.ran == []
        nursery.cancel_scope.cancel()


def test_an_answer_may_come_as_soon_as_the_approval_is_seen() -> None:
    """H3-5: before the call that asks has begun to wait."""

    async def story(random: Random) -> None:
        desk = Desk()
        async with desk.world.talk("ask") as (_, talk), trio.open_nursery() as nursery:
            async with talk.subscribe() as updates:
                assert isinstance(updates.next_nowait(), Snapshot)
                sent = trio.Event()

                async def answers() -> None:
                    async for update in updates:
                        match update:
                            case Frame(event=ItemChanged(item=Approval(state="pending") as asked)):
                                await talk.answer_approval(asked.id, "allow")
                                sent.set()
                                return
                            case _:
                                pass

                nursery.start_soon(answers)
                await talk.send("act")
                await sent.wait()
                await idle(talk)
            assert desk.ran == ["first"]

    run_seeds(story, 40)


async def test_a_key_that_is_pressed_late_decides_nothing_else(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H3-6: the second prompt is on the screen when the answer to the first arrives."""
    desk = Desk()
    async with desk.world.talk("ask") as (_, talk), talk.subscribe() as updates:
        await talk.send("act twice")
        first = await pending_approval(updates)
        await talk.answer_approval(first.id, "allow", by="one client")
        second = await pending_approval(updates)
        with pytest.raises(NotPending):
            await talk.answer_approval(first.id, "allow", by="another client")
        await settle(1)
        assert desk.ran == ["first"]
        await talk.answer_approval(second.id, "reject")
        await idle(talk)
        assert desk.ran == ["first"]


def test_clients_that_queue_and_withdraw_at_once_see_one_order() -> None:
    """H5-4, H5-5."""

    async def story(random: Random) -> None:
        desk = Desk()
        async with desk.world.talk() as (_, talk), trio.open_nursery() as nursery:
            viewers = [Viewer(talk) for _ in range(3)]
            for viewer in viewers:
                nursery.start_soon(viewer.follow, random, 2)
            await talk.send("hang")
            withdrawn: set[str] = set()
            sent: list[str] = []

            async def client(name: str) -> None:
                for number in range(4):
                    await trio.sleep(random.choice((0, 0, 0.01)))
                    text = f"{name} {number}"
                    waiting = await talk.send(text)
                    sent.append(text)
                    if random.random() < 0.4:
                        await talk.withdraw_input(waiting.id)
                        withdrawn.add(text)

            async with trio.open_nursery() as clients:
                for name in ("one", "two"):
                    clients.start_soon(client, name)
            await settle(1)
            orders = {tuple(map(_words, v.known.state.sessions[0].queue)) for v in viewers}
            (order,) = orders
            assert set(order) == set(sent) - withdrawn
            await talk.interrupt()
            await settle(1)
            await talk.resume()
            await settle(5)
            texts = [text_of(message.content) for message in await kinds(talk, UserMessage)]
            assert texts == ["hang", *order]
            nursery.cancel_scope.cancel()

    run_seeds(story, 30)


def _words(waiting: object) -> str:
    source = getattr(waiting, "source", None)
    assert isinstance(source, UserInput)
    return text_of(source.content)


async def test_a_clock_that_is_set_back_changes_neither_order_nor_waits(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H10-1: two hours, in the middle of a turn."""
    desk = Desk()
    real = time.time_ns
    async with desk.world.talk("ask") as (runtime, talk):
        other = await runtime.create_conversation(directory="/w")
        await talk.send("act twice")
        await settle(1)
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: real() - 2 * 3600 * 10**9)
            for _ in range(2):
                asked = (await kinds(talk, Approval))[-1]
                began = trio.current_time()
                await talk.answer_approval(asked.id, "allow")
                await settle(1)
                assert trio.current_time() - began < 2
            page = await talk.items(limit=200)
            places = [item.at for item in page.items]
            assert places == sorted(places)
            assert [call.state for call in await kinds(talk, ToolCall)] == ["done", "done"]
            info = await talk.info()
            assert info.updated_at >= info.created_at
            assert (await other.run("note")).turn.state == "completed"
            listed = await runtime.store.list(ListQuery())
            assert {row.id for row in listed.rows} == {talk.id, other.id}
            updates = [row.info.updated_at for row in listed.rows]
            assert updates == sorted(updates, reverse=True)


def test_a_steer_by_one_client_and_an_interrupt_by_another_lose_nothing() -> None:
    """H4-5, H5-1, H5-2: whatever the order, each message has one place."""

    async def story(random: Random) -> None:
        desk = Desk()
        async with desk.world.talk() as (_, talk):
            await talk.send("note")

            async def steers() -> None:
                await trio.sleep(random.choice((0, 0.4, 0.5, 0.6)))
                await talk.send("steer", delivery="steer")

            async def interrupts() -> None:
                await trio.sleep(random.choice((0, 0.4, 0.5, 0.6)))
                await talk.interrupt()
                with suppress(NotPending):
                    await talk.send("after")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(steers)
                nursery.start_soon(interrupts)
            await settle(5)
            await talk.resume()
            await settle(5)
            messages = [text_of(m.content) for m in await kinds(talk, UserMessage)]
            assert sorted(messages) == ["after", "note", "steer"]
            states = {call.state for call in await kinds(talk, ToolCall)}
            assert states <= {"done", "cancelled"}
            assert (await snapshot(talk)).sessions[0].queue == ()
            assert (await talk.configure(Settings())).mode == "full"

    run_seeds(story, 30)
