"""An interrupt is at once, and stops what the same client has sent before it, too."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from random import Random

import trio

from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.slow_log import SlowLog, open_slow_store
from tests.vaala.runtime.worlds import settle
from tests.vaala.server.api.serving import Client, machine, server
from vaala.models.base import ModelEvent, ModelRequest, TextDelta
from vaala.server.order import Lanes
from vaala.testing.function_model import FunctionModel, newest
from vaala_protocol.content import TextContent
from vaala_protocol.methods.conversation import ConversationRenameParams
from vaala_protocol.methods.session import (
    SessionInterruptParams,
    SessionResumeParams,
    SessionSendParams,
)


def message(talk: str, text: str) -> SessionSendParams:
    return SessionSendParams(
        conversation_id=talk, client_id=text, content=(TextContent(text=text),)
    )


class Site:
    """A model that answers nothing and hangs, until it is interrupted."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.model = FunctionModel(self.respond)

    async def respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.heard.append(newest(request).prompt)
        yield TextDelta("half")
        await trio.sleep_forever()


async def running(client: Client, talk: str) -> str | None:
    snapshot = await client.watch(talk)
    assert snapshot is not None
    turn = snapshot.sessions[0].turn
    return turn.id if turn is not None and turn.state == "running" else None


def test_a_message_that_was_sent_before_an_interrupt_does_not_run_after_it() -> None:
    """Pipelined behind a message that is still being written down, at any moment of a turn."""

    async def story(random: Random) -> None:
        site = Site()
        async with (
            open_slow_store(SlowLog(random)) as store,
            server(site.model, executors=machine(), storage=store) as served,
            served.client() as client,
            served.client() as other,
        ):
            talk = await client.create()
            await client.call(message(talk, "first"))
            before = [text for text in ("x", "y") if random.random() < 0.3]
            for text in before:
                await client.call(message(talk, text))
            turn_id = await running(client, talk) if random.random() < 0.5 else None
            await settle(3 * random.random())
            if turn_id is None and random.random() < 0.3:
                # Then what follows comes while the first turn ends.
                await other.begin(SessionInterruptParams(conversation_id=talk))
                await settle(3 * random.random())
            sent = [await client.begin(message(talk, "last"))]
            await trio.sleep(random.choice((0, 2)) * random.random())
            interrupt = SessionInterruptParams(conversation_id=talk, turn_id=turn_id)
            sent.append(await client.begin(interrupt))
            for id in sent:
                await client.answer_of(id)
            await settle(30)
            assert await running(other, talk) is None
            heard = len(site.heard)
            await client.call(SessionResumeParams(conversation_id=talk))
            await settle(5)
            # What was held is not lost.
            waiting = {*before, "last"} - set(site.heard[:heard])
            assert (await running(other, talk) is not None) == bool(waiting)

    run_seeds(story, 60)


def test_an_interrupt_does_not_stop_what_another_client_has_begun_since() -> None:
    """Behind a change that is still being written down, which begins no turn."""

    async def story(random: Random) -> None:
        site = Site()
        async with (
            open_slow_store(SlowLog(random)) as store,
            server(site.model, executors=machine(), storage=store) as served,
            served.client() as client,
            served.client() as other,
        ):
            talk = await client.create()
            await client.call(message(talk, "first"))
            await settle(5)
            renamed = await client.begin(ConversationRenameParams(conversation_id=talk, title="t"))
            stopped = await client.begin(SessionInterruptParams(conversation_id=talk))
            assert (await client.answer_of(stopped)).interrupted
            await other.call(message(talk, "second"))
            await client.answer_of(renamed)
            await settle(30)
            assert await running(other, talk) is not None
            assert site.heard == ["first", "second"]

    run_seeds(story, 40)


def test_a_ticket_knows_what_stands_in_front_of_it() -> None:
    lanes = Lanes()
    first, second, third = [lanes.ticket("a", name) for name in ("one", "two", "three")]
    assert not first.in_front
    assert second.in_front == ("one",)
    assert list(third.in_front) == ["two", "one"]
    with lanes.hold("a", first):
        pass
    assert list(third.in_front) == ["two"]
    assert not second.in_front
    assert lanes.ticket("b", "other").in_front == ()
    assert lanes.ticket(None, "none").in_front == ()
