"""How a watch ends: a conversation that never opens again, one that cannot be shown, a stop."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import trio
import trio.testing

from tests.vaala.server.memory_wires import memory_wires
from vaala.runtime import Runtime
from vaala.server import limits
from vaala.server.api.watches import Watches
from vaala.server.outbox import Outbox
from vaala.server.wire import Wire
from vaala.stream import EventStream, Reading, Subscription
from vaala_protocol.errors import NotFound, Overloaded, Stopping
from vaala_protocol.events import ConversationChanged
from vaala_protocol.methods.conversation import ConversationSubscribeParams, Position
from vaala_protocol.state import ConversationInfo, Snapshot

INFO = ConversationInfo(id="c", created_at=1, updated_at=1)


class FakeConversation:
    def __init__(self) -> None:
        self.stream = EventStream()
        self.broken = False

    def snapshot(self) -> Snapshot:
        if self.broken:
            raise ZeroDivisionError("a fault in a snapshot")
        return Snapshot(
            epoch=self.stream.epoch, seq=self.stream.seq, conversation=INFO, sessions=()
        )

    @asynccontextmanager
    async def subscribe(
        self, *, after: Position | None = None, reading: Reading | None = None
    ) -> AsyncGenerator[Subscription]:
        with self.stream.subscribe(self.snapshot, after=after, reading=reading) as subscription:
            yield subscription

    def crash(self, reason: str = "crashed") -> None:
        self.stream.close(reason)


class FakeRuntime:
    """Opens what ``openings`` says: conversations, or what prevents that."""

    def __init__(self, *openings: FakeConversation | Exception) -> None:
        self.openings = list(openings)
        self.asked_at: list[float] = []

    async def conversation(self, conversation_id: str) -> FakeConversation:
        self.asked_at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        one = self.openings.pop(0) if len(self.openings) > 1 else self.openings[0]
        if isinstance(one, Exception):
            raise one
        return one


class Watching:
    def __init__(self, watches: Watches, wire: Wire) -> None:
        self.watches = watches
        self._wire = wire

    async def watch(self, conversation_id: str = "c") -> None:
        params = ConversationSubscribeParams(conversation_id=conversation_id)
        _, watch = await self.watches.watch(params)
        watch.begin()

    async def next(self) -> tuple[str, Any]:
        with trio.fail_after(600):
            message = json.loads(await self._wire.receive())
        return message["method"], message["params"]


@asynccontextmanager
async def watching(*openings: FakeConversation | Exception) -> AsyncGenerator[Watching]:
    theirs, ours = memory_wires()
    async with trio.open_nursery() as nursery:
        outbox = Outbox()
        nursery.start_soon(outbox.run, ours)
        runtime = cast("Runtime", FakeRuntime(*openings))
        yield Watching(Watches(runtime, nursery, outbox), theirs)
        nursery.cancel_scope.cancel()


async def test_a_conversation_that_opens_late_is_followed(autojump_clock: object) -> None:
    first, second = FakeConversation(), FakeConversation()
    no = Stopping("it could not be opened")
    async with watching(first, no, no, second) as client:
        await client.watch()
        first.stream.publish(ConversationChanged(conversation=INFO))
        first.crash()
        assert (await client.next())[0] == "conversation/event"
        method, params = await client.next()
        assert method == "conversation/resync"
        assert params["snapshot"]["epoch"] == second.stream.epoch
        second.stream.publish(ConversationChanged(conversation=INFO))
        method, params = await client.next()
        assert (method, params["frame"]["first"]) == ("conversation/event", 1)


async def test_a_conversation_that_never_opens_again_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    first = FakeConversation()
    async with watching(first, Stopping("it could not be opened")) as client:
        await client.watch()
        first.crash()
        began = trio.current_time()
        method, params = await client.next()
        assert method == "conversation/closed"
        assert params["reason"] == "it does not open: it could not be opened"
        assert trio.current_time() - began < limits.REOPEN_MAX_S * limits.REOPEN_TIMES_MAX
        assert len(client.watches) == 0


async def test_one_that_crashes_after_each_opening_is_given_up_too(
    autojump_clock: object,
) -> None:
    crashed = FakeConversation()
    crashed.crash()
    async with watching(crashed) as client:
        await client.watch()
        methods = [(await client.next())[0] for _ in range(limits.REOPEN_TIMES_MAX + 1)]
        assert methods == ["conversation/resync"] * limits.REOPEN_TIMES_MAX + [
            "conversation/closed"
        ]
        assert len(client.watches) == 0


async def test_one_that_is_deleted_while_it_is_away_is_closed(autojump_clock: object) -> None:
    first = FakeConversation()
    async with watching(first, NotFound("gone")) as client:
        await client.watch()
        first.crash("closing")
        assert await client.next() == (
            "conversation/closed",
            {"conversationId": "c", "reason": "deleted"},
        )


async def test_what_cannot_be_shown_ends_its_watch_alone(
    autojump_clock: object, errors_logged: list[str]
) -> None:
    bad, good = FakeConversation(), FakeConversation()
    async with watching(bad, good) as client:
        await client.watch("bad")
        await client.watch("good")
        bad.broken = True
        for _ in range(5_000):  # more than a queue holds, so that a snapshot is due
            bad.stream.publish(ConversationChanged(conversation=INFO))
        method, params = await client.next()
        assert (method, params["conversationId"]) == ("conversation/closed", "bad")
        good.stream.publish(ConversationChanged(conversation=INFO))
        assert (await client.next())[1]["conversationId"] == "good"
    assert errors_logged == ["conversation bad cannot be shown"]


async def test_watches_are_bounded(autojump_clock: object) -> None:
    async with watching(FakeConversation()) as client:
        for number in range(limits.WATCHED_CONVERSATIONS_MAX):
            await client.watch(f"c{number}")
        with pytest.raises(Overloaded):
            await client.watch("one-more")
        await client.watch("c7")
        client.watches.leave("c8")
        await client.watch("one-more")


async def test_what_cannot_be_opened_at_first_is_refused(autojump_clock: object) -> None:
    async with watching(NotFound("there is no conversation c")) as client:
        with pytest.raises(NotFound):
            await client.watch()
        assert len(client.watches) == 0
