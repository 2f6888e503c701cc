"""Interrupts that come while the session writes: what was on its way is settled once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from random import Random

import pytest
import trio

import vaala
from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.fake_executor import FakeExecutor
from tests.vaala.runtime.slow_log import SlowLog, open_slow_store
from tests.vaala.runtime.worlds import settle
from vaala.agent.history import read_history
from vaala.dao.entries import ROOT_STREAM
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.session import Session
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.errors import NotPending
from vaala_protocol.items import Approval, PeerMessage, ToolCall
from vaala_protocol.settings import Mode, Settings


async def quick() -> str:
    """Return at once."""
    return "done"


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    said = newest(request)
    calls: list[tuple[str, dict[str, str]]] = [
        ("quick", {}),
        ("exec_command", {"command": "x"}),
    ]
    works = said.prompt.startswith("work") and not said.results
    for event in answer("", *calls) if works else answer("fine"):
        yield event


class Client:
    """Sends, answers approvals and interrupts, at random moments."""

    def __init__(self, talk: ConversationHandle, session: Session, random: Random) -> None:
        self.talk = talk
        self.session = session
        self.random = random

    async def send(self, prompt: str) -> None:
        await trio.sleep(10 * self.random.random())
        await self.talk.send(prompt, delivery=self.random.choice(["queue", "steer"]))

    async def interrupt(self) -> None:
        for _ in range(3):
            await trio.sleep(6 * self.random.random())
            await self.talk.interrupt()

    async def approve(self) -> None:
        while True:
            await trio.sleep(self.random.random())
            for item in list(self.session.state.open.values()):
                if isinstance(item, Approval) and item.state == "pending":
                    try:
                        await self.talk.answer_approval(item.id, item.options[0].id)
                    except NotPending:
                        continue


async def check_log(log: SlowLog, path: str) -> None:
    """A turn ends once; no two versions of an item have the same number."""
    page = await log.read(path, ROOT_STREAM)
    entries = [stored.entry for stored in page.entries]
    ended = [e["id"] for e in entries if e["t"] == "turn" and e["state"] != "running"]
    versions = [(e["id"], e.get("rev", 1)) for e in entries if e["t"] == "item"]
    assert len(ended) == len(set(ended))
    assert len(versions) == len(set(versions))


async def check_history(session: Session) -> None:
    """What the next request is made of is what the log says."""
    if (kept := session.history) is not None:
        anew = await read_history(kept.model, session.log.history(), ("", 1))
        assert kept.request(()) == anew.request(())


@pytest.mark.parametrize("mode", ["full", "ask"])
def test_an_interrupt_while_something_is_written_settles_everything_once(mode: Mode) -> None:
    """H4-4, H4-5."""

    async def story(random: Random) -> None:
        log = SlowLog(random)
        async with (
            open_slow_store(log) as store,
            vaala.open_runtime(
                storage=store,
                models=FunctionModel(respond),
                executors={"local": FakeExecutor()},
                tools=[quick],
            ) as runtime,
        ):
            talk = await runtime.create_conversation(directory="/w", settings=Settings(mode=mode))
            session = await (await runtime.conversation(talk.id)).root()
            client = Client(talk, session, random)
            with trio.move_on_after(20):
                async with trio.open_nursery() as nursery:
                    for prompt in ("work 1", "say 2", "work 3"):
                        nursery.start_soon(client.send, prompt)
                    nursery.start_soon(client.interrupt)
                    nursery.start_soon(client.approve)
            await talk.interrupt()
            await settle(10)
            await check_log(log, talk.id)
            await check_history(session)

    run_seeds(story, 25)


def test_after_an_interrupt_nothing_begins_whatever_was_being_written() -> None:
    """Also while the end of one turn, or the start of the next, is on its way to the disk."""

    async def story(random: Random) -> None:
        async with (
            open_slow_store(SlowLog(random)) as store,
            vaala.open_runtime(
                storage=store,
                models=FunctionModel(respond),
                executors={"local": FakeExecutor()},
            ) as runtime,
        ):
            talk = await runtime.create_conversation(directory="/w", settings=Settings(mode="full"))
            session = await (await runtime.conversation(talk.id)).root()
            for number in range(4):
                await talk.send(str(number))
            while not random.random() < 0.2:
                await settle(random.random())
            done = session.state.head.turn
            assert done is not None
            begins = session.turn is not None and session.turn.id != done.id
            await talk.interrupt()
            await settle(60)
            last = session.state.head.turn
            assert last is not None
            assert session.turn is None
            assert (last.id != done.id) == begins
            assert all(one.state == "held" for one in session.state.pending)

    run_seeds(story, 60)


class Waiter:
    """Spawns an agent in one turn, waits for it in the next."""

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        said = newest(request)
        events = answer("fine")
        match said.prompt:
            case "spawn" if not said.results:
                events = answer("", ("spawn_agent", {"task": "work"}))
            case "wait" if not said.results:
                events = answer("", ("wait_agent", {"session_id": self.child_id}))
            case "work":
                await trio.sleep(8)
                events = answer("the child's result")
            case _:
                pass
        for event in events:
            yield event

    child_id = ""


def test_an_interrupt_of_a_wait_loses_no_result_of_an_agent() -> None:
    """The result comes with the call, or by the queue: once, whenever the interrupt comes."""

    async def story(random: Random) -> None:
        waiter = Waiter()
        async with (
            open_slow_store(SlowLog(random)) as store,
            vaala.open_runtime(
                storage=store,
                models=FunctionModel(waiter.respond),
                executors={"local": FakeExecutor()},
            ) as runtime,
        ):
            talk = await runtime.create_conversation(directory="/w", settings=Settings(mode="full"))
            session = await (await runtime.conversation(talk.id)).root()
            await talk.run("spawn")
            (waiter.child_id,) = session.state.head.children
            child = await session.children_table.get(waiter.child_id)
            await talk.send("wait")
            while not child.at_rest:
                await child.outcomes.news()
            for _ in range(random.randrange(12)):
                await trio.lowlevel.checkpoint()
            await talk.interrupt()
            await settle(20)
            await talk.run("hello")
            items = (await talk.items(limit=100)).items
            told = [item for item in items if isinstance(item, PeerMessage)]
            waited = [
                item
                for item in items
                if isinstance(item, ToolCall) and item.name == "wait_agent" and item.state == "done"
            ]
            assert len(told) + len(waited) == 1

    run_seeds(story, 30)
