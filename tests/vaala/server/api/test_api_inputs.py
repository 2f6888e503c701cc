"""Messages that wait: idempotent, the same for everybody, taken back for everybody."""

from __future__ import annotations

from random import Random

import pytest
import trio

from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import (
    is_event,
    is_turn,
    machine,
    server,
    settled,
    state_of,
)
from vaala_protocol.content import TextContent
from vaala_protocol.errors import NotFound, NotPending
from vaala_protocol.events import InputChanged
from vaala_protocol.items import UserMessage
from vaala_protocol.methods.session import (
    SessionConfigureParams,
    SessionEditInputParams,
    SessionInterruptParams,
    SessionItemsParams,
    SessionMoveInputParams,
    SessionResumeParams,
    SessionTurnParams,
    SessionWithdrawInputParams,
)
from vaala_protocol.settings import Settings
from vaala_protocol.state import UserInput

SLOW = {"say": "thinking about it", "chunk": 4, "pace_s": 1.0}


async def test_a_message_that_is_sent_again_is_one_message(autojump_clock: object) -> None:
    """H5-3."""
    async with server(script(SLOW, {"say": "more"}), executors=machine()) as served:
        async with served.client("before") as before:
            talk = await before.create()
            first = await before.send(talk, "hello", client_id="m1")
        async with served.client("after") as after:
            again = await after.send(talk, "hello", client_id="m1")
            assert again.id == first.id
            await trio.sleep(60)
            page = await after.call(SessionItemsParams(conversation_id=talk))
            assert sum(isinstance(item, UserMessage) for item in page.items) == 1


async def test_a_message_that_is_taken_back_is_gone_for_all(autojump_clock: object) -> None:
    """H5-4."""
    async with (
        server(script(SLOW), executors=machine()) as served,
        served.client("one") as one,
        served.client("two") as two,
    ):
        talk = await one.create()
        firsts = [await client.watch(talk) for client in (one, two)]
        await one.send(talk, "hello")
        waiting = await one.send(talk, "and then?")
        await two.hear(is_event(InputChanged, input=waiting))
        edited = await two.call(
            SessionEditInputParams(
                conversation_id=talk,
                input_id=waiting.id,
                content=(TextContent(text="or else?"),),
            )
        )
        await one.hear(is_event(InputChanged, input=edited))
        await two.call(SessionWithdrawInputParams(conversation_id=talk, input_id=waiting.id))
        await settled()
        for client, first in zip((one, two), firsts, strict=True):
            assert first is not None
            assert state_of(client, talk, first).sessions[0].queue == ()
        for gone, refusal in ((waiting.id, NotPending), ("no-such", NotFound)):
            with pytest.raises(refusal):
                await one.call(SessionWithdrawInputParams(conversation_id=talk, input_id=gone))


def test_two_clients_that_queue_see_the_same_order() -> None:
    """H5-5, H5-1: also when the queue is held by an interrupt, changed and released."""

    async def story(random: Random) -> None:
        async with (
            server(script(SLOW), executors=machine()) as served,
            served.client("one") as one,
            served.client("two") as two,
        ):
            clients = (one, two)
            talk = await one.create()
            firsts = [await client.watch(talk) for client in clients]
            await one.send(talk, "hello")
            async with trio.open_nursery() as nursery:
                for number in range(6):
                    nursery.start_soon(random.choice(clients).send, talk, f"m{number}")
            await two.call(SessionInterruptParams(conversation_id=talk))
            await two.hear(is_turn("interrupted"))
            await settled()
            queues = []
            for client, first in zip(clients, firsts, strict=True):
                assert first is not None
                queues.append(state_of(client, talk, first).sessions[0].queue)
            assert queues[0] == queues[1]
            assert len(queues[0]) == 6
            assert {waiting.state for waiting in queues[0]} == {"held"}
            last, first_of_all = queues[0][-1].id, queues[0][0].id
            await one.call(
                SessionMoveInputParams(conversation_id=talk, input_id=last, before=first_of_all)
            )
            await two.call(SessionResumeParams(conversation_id=talk))
            await trio.sleep(1_000)
            page = await one.call(SessionItemsParams(conversation_id=talk, limit=100))
            said = [item for item in page.items if isinstance(item, UserMessage)]
            assert len(said) == 7
            expected = [queues[0][-1], *queues[0][:-1]]
            sources = [UserInput(content=item.content) for item in said[1:]]
            assert sources == [one.source for one in expected]

    run_seeds(story, 15)


async def test_settings_are_told_and_changed_in_part(autojump_clock: object) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create("ask")
        told = await client.call(SessionConfigureParams(conversation_id=talk))
        assert told.settings.mode == "ask"
        assert {option.id: option.value for option in told.options} == {
            "model": "scripted", "mode": "ask", "effort": None,
        }  # fmt: skip
        changed = await client.call(
            SessionConfigureParams(conversation_id=talk, settings=Settings(effort="high"))
        )
        assert (changed.settings.mode, changed.settings.effort) == ("ask", "high")
        with pytest.raises(NotFound):
            await client.call(SessionConfigureParams(conversation_id=talk, session_id="no-such"))


async def test_a_turn_of_long_ago_can_be_asked_for(autojump_clock: object) -> None:
    async with (
        server(script({"say": "answer {{prompt}}"}), executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create()
        await client.watch(talk)
        turns = []
        for number in range(30):
            client.heard.clear()
            await client.send(talk, f"n{number}")
            turns.append((await client.hear(is_turn("completed"))).frame.event.turn)
        for number in (0, 7, 29):
            result = await client.call(
                SessionTurnParams(conversation_id=talk, turn_id=turns[number].id)
            )
            assert result.turn == turns[number]
            assert result.text == f"answer n{number}"
        for unknown in ("no-such", turns[3].id[:-1] + "x"):
            with pytest.raises(NotFound):
                await client.call(SessionTurnParams(conversation_id=talk, turn_id=unknown))
