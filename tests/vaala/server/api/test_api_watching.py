"""Watching: a snapshot, then every event, whoever comes, goes, lags or returns."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import (
    Client,
    Server,
    is_item,
    is_turn,
    machine,
    server,
    settled,
    state_of,
    updates,
)
from vaala import limits
from vaala.conversation import Conversation
from vaala.models.scripted import ScriptedModel
from vaala.server.api.frames import shown_snapshot
from vaala.testing.projection import Projection
from vaala.tools.function import tool
from vaala_protocol.base import encode
from vaala_protocol.errors import NotFound
from vaala_protocol.items import Approval, AssistantMessage, ToolCall
from vaala_protocol.methods.conversation import (
    ClosedNotification,
    ConversationDeleteParams,
    ConversationUnsubscribeParams,
    Position,
    ResyncNotification,
)
from vaala_protocol.methods.decisions import ApprovalAnswerParams
from vaala_protocol.methods.session import SessionInterruptParams, SessionItemsParams
from vaala_protocol.state import Snapshot


async def act(what: str) -> str:
    """Do it."""
    return f"did {what}"


async def look(what: str) -> str:
    """See it."""
    await trio.sleep(1)
    return f"saw {what}"


TOOLS = [tool(act, access="execute"), tool(look, access="read")]


def driver_runs(conversation: Conversation) -> bool:
    """The turn that `drive` has begun, and is going to interrupt, has not ended."""
    turn = conversation.snapshot().sessions[0].turn
    return turn is None or turn.state == "running"


def long_turn(deltas: int, pace_s: float = 0) -> ScriptedModel:
    """An answer of so many deltas with parallel calls, one of them to be approved; then a hang."""
    calls = [
        {"tool": "look", "arguments": {"what": "a"}},
        {"tool": "act", "arguments": {"what": "b"}},
        {"tool": "look", "arguments": {"what": "c"}},
    ]
    return script(
        {"say": "x" * deltas, "chunk": 1, "pace_s": pace_s, "call": calls},
        {"say": "and now for something long", "chunk": 2, "hang": True},
    )


async def drive(driver: Client, talk: str) -> None:
    """Send, approve, and interrupt the second answer."""
    await driver.send(talk, "go")
    asked = await driver.hear(is_item(Approval, state="pending"))
    approval = asked.frame.event.item
    await driver.call(
        ApprovalAnswerParams(conversation_id=talk, approval_id=approval.id, option="allow")
    )
    await driver.hear(is_item(ToolCall, name="act", state="done"))
    await trio.sleep(10)
    interrupted = await driver.call(SessionInterruptParams(conversation_id=talk))
    assert interrupted.interrupted
    await driver.hear(is_turn("interrupted"))
    await settled()


def test_two_viewers_and_a_driver_end_with_the_same_state() -> None:
    async def story(random: Random) -> None:
        deltas = 2_000
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(
                server(long_turn(deltas), tools=TOOLS, executors=machine())
            )
            driver, *viewers = [
                await stack.enter_async_context(
                    served.client(name, buffer_bytes=random.choice([2_000, 20_000, 2_000_000]))
                )
                for name in ("driver", "one", "two")
            ]
            talk = await driver.create("ask")
            firsts = [await client.watch(talk) for client in (driver, *viewers)]
            await drive(driver, talk)
            last = encode(await driver.watch(talk))
            for client, first in zip((driver, *viewers), firsts, strict=True):
                assert isinstance(first, Snapshot)
                assert encode(state_of(client, talk, first)) == last
                assert not any(isinstance(one, ResyncNotification) for one in client.heard)

    run_seeds(story, 5)


def test_a_viewer_that_drops_50_times_ends_with_the_same_state() -> None:
    """H1-1, H1-4, H1-5: what comes after a drop is what is new, and nothing else."""

    async def story(random: Random) -> None:
        projection, seen = Projection(), Counter[str]()

        async def visit(served: Server, talk: str, position: Position | None) -> Position:
            async with served.client("restless") as viewer:
                snapshot = await viewer.watch(talk, position)
                if snapshot is not None:
                    seen["snapshots"] += 1
                    projection.apply(snapshot)
                for _ in range(random.randrange(60)):
                    await trio.lowlevel.checkpoint()
                for update in updates(viewer, talk):
                    seen["updates"] += 1
                    projection.apply(update)
            return Position(epoch=projection.state.epoch, seq=projection.state.seq)

        async with (
            server(long_turn(400, pace_s=0.05), tools=TOOLS, executors=machine()) as served,
            served.client("driver") as driver,
            trio.open_nursery() as nursery,
        ):
            talk = await driver.create("ask")
            conversation = await served.runtime.conversation(talk)
            await driver.watch(talk)
            nursery.start_soon(drive, driver, talk)
            position = await visit(served, talk, None)
            for _ in range(50):
                await trio.sleep(random.choice([0, 0.3, 1.0]))
                position = await visit(served, talk, position)
            while position.seq < conversation.stream.seq or driver_runs(conversation):
                await trio.sleep(random.choice([0, 0.3]))
                position = await visit(served, talk, position)
            assert seen["snapshots"] == 1
            assert seen["updates"] <= conversation.stream.seq
            assert encode(projection.state) == encode(conversation.snapshot())

    run_seeds(story, 8)


async def test_an_old_or_foreign_position_gets_a_snapshot(autojump_clock: object) -> None:
    """H1-2, H1-3."""
    model = script({"say": "x" * 3_000, "chunk": 1})
    async with (
        server(model, executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        first = await client.watch(talk)
        assert first is not None
        await client.send(talk, "go")
        await client.hear(is_turn("completed"))
        await settled()
        seq = state_of(client, talk, first).seq
        near = await client.watch(talk, Position(epoch=first.epoch, seq=seq - 5))
        assert near is None
        await settled()
        (*_, last) = updates(client, talk)
        assert last.seq == seq
        assert await client.watch(talk, Position(epoch=first.epoch, seq=1)) is not None
        assert await client.watch(talk, Position(epoch="of-another-run", seq=seq)) is not None
        assert await client.watch(talk, Position(epoch=first.epoch, seq=seq + 1)) is not None


async def test_one_encoding_serves_all_viewers(autojump_clock: object) -> None:
    """H2-3."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(
            server(script({"say": "x" * 100, "chunk": 1, "pace_s": 0.01}), executors=machine())
        )
        clients = [await stack.enter_async_context(served.client()) for _ in range(50)]
        talk = await clients[0].create()
        for client in clients:
            await client.watch(talk)
        await clients[0].send(talk, "go")
        for client in clients:
            await client.hear(is_turn("completed"))
        messages = [
            [raw for raw in client.raw if b'"conversation/event"' in raw[:60]] for client in clients
        ]
        assert len(messages[0]) > 100
        for other in messages[1:]:
            assert all(one is another for one, another in zip(messages[0], other, strict=True))


async def test_a_slow_client_holds_up_nobody_and_recovers(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H2-1: 30 MB of output against a client that reads nothing."""
    steps = [
        {"say": "x" * 400_000, "chunk": 20_000, "pace_s": 0.001, "call": [
            {"tool": "look", "arguments": {"what": str(number)}}]}
        for number in range(60)
    ]  # fmt: skip
    model = script(*steps, {"say": "done"})
    async with (
        server(model, tools=TOOLS, executors=machine()) as served,
        served.client("driver") as driver,
        served.client("slow") as slow,
    ):
        talk = await driver.create()
        await driver.watch(talk)
        first = await slow.watch(talk)
        assert first is not None
        slow.stop_reading()
        conversation = await served.runtime.conversation(talk)
        began = trio.current_time()
        await driver.send(talk, "go")
        most = 0
        for _ in range(60):
            await driver.hear(is_item(ToolCall, state="done"))
            most = max(most, *(one.size for one in conversation.stream._subscribers))
            driver.heard.clear()
        await driver.hear(is_turn("completed"))
        pace = 60 * (20 + 1) * 0.001
        assert trio.current_time() - began < pace + 60 * 1 + 1
        assert most <= limits.SUBSCRIPTION_CHARACTERS_MAX
        assert not any(isinstance(note, ResyncNotification) for note in slow.heard)
        slow.read_on()
        await slow.hear(lambda note: isinstance(note, ResyncNotification))
        await settled()
        shown = shown_snapshot(conversation.snapshot())
        assert encode(state_of(slow, talk, first)) == encode(shown)
        assert len(encode(shown)) < 5_000_000
        assert len(shown.sessions[0].items) < len(conversation.snapshot().sessions[0].items)


async def test_a_crash_of_the_conversation_is_followed_by_a_snapshot(
    autojump_clock: object, errors_logged: list[str]
) -> None:
    model = script({"say": "one"})
    async with (
        server(model, executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        first = await client.watch(talk)
        assert first is not None
        await client.send(talk, "go")
        await client.hear(is_turn("completed"))
        conversation = await served.runtime.conversation(talk)

        class Poison:
            """No conversation knows this message: its loop dies of it."""

        conversation.report(Poison())  # type: ignore[arg-type] # that is the point
        resync = await client.hear(lambda note: isinstance(note, ResyncNotification))
        assert resync.snapshot.epoch != first.epoch
        await client.send(talk, "again")
        await client.hear(
            lambda note: is_turn("completed")(note) and note.frame.epoch == resync.snapshot.epoch
        )
        await settled()
        again = await served.runtime.conversation(talk)
        assert encode(state_of(client, talk, first)) == encode(again.snapshot())
    assert len(errors_logged) == 1


async def test_those_who_watch_are_told_of_a_deletion(autojump_clock: object) -> None:
    async with (
        server(script({"say": "one"}), executors=machine()) as served,
        served.client("one") as one,
        served.client("two") as two,
    ):
        talk = await one.create()
        await two.watch(talk)
        await one.send(talk, "go")
        await two.hear(is_turn("completed"))
        await one.call(ConversationDeleteParams(conversation_id=talk))
        closed = await two.hear(lambda note: isinstance(note, ClosedNotification))
        assert closed == ClosedNotification(conversation_id=talk, reason="deleted")
        with pytest.raises(NotFound):
            await two.watch(talk)
        other = await one.create()
        assert await two.watch(other) is not None


async def test_who_leaves_hears_nothing_more_and_who_comes_again_begins_anew(
    autojump_clock: object,
) -> None:
    async with (
        server(script({"say": "one"}), executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        await client.watch(talk)
        await client.call(ConversationUnsubscribeParams(conversation_id=talk))
        await client.send(talk, "go")
        await settled()
        assert updates(client, talk) == []
        first = await client.watch(talk)
        second = await client.watch(talk)
        assert second is not None
        assert first == second
        await client.send(talk, "more")
        await settled()
        assert encode(state_of(client, talk, second)) == encode(
            (await served.runtime.conversation(talk)).snapshot()
        )


async def test_nothing_private_leaves_the_server(autojump_clock: object) -> None:
    model = script({"think": "hm", "say": "one", "call": [
        {"tool": "look", "arguments": {"what": "a"}}]}, {"say": "two"})  # fmt: skip
    async with (
        server(model, tools=TOOLS, executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        await client.watch(talk)
        await client.send(talk, "go")
        await client.hear(is_turn("completed"))
        await client.watch(talk)
        page = await client.call(SessionItemsParams(conversation_id=talk))
        assert any(isinstance(item, AssistantMessage) for item in page.items)
        log = (await (await served.runtime.conversation(talk)).root()).log
        kept = (await log.items()).items
        assert any(isinstance(item, AssistantMessage) and item.private for item in kept)
        assert not any("private" in str(message) for message in client.raw)
