"""`RemoteConversation.run` finds the end of its turn, whatever happened while it was away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from tests.vaala.client.meeting import MemoryFinder, client_of
from tests.vaala.server.api.serving import server
from vaala.client import Client
from vaala.interface import Conversation
from vaala.models.scripted import ScriptedModel
from vaala_protocol.errors import NotPending, Stopping
from vaala_protocol.items import UserMessage
from vaala_protocol.state import TurnResult

ONE_AFTER_ANOTHER = {
    "steps": [{"say": "The first.", "delay_s": 2}, {"repeat": 200, "steps": [{"say": "Another."}]}]
}
HANGS = {"steps": [{"say": "I begin.", "hang": True}]}


@asynccontextmanager
async def _away(
    script: object, meanwhile: Callable[[Conversation], Awaitable[None]]
) -> AsyncGenerator[list[TurnResult | Exception]]:
    """Run a prompt whose client is away from its send on, until ``meanwhile`` is over."""
    outcome: list[TurnResult | Exception] = []
    async with server(ScriptedModel(script)) as srv:
        finder = MemoryFinder(srv)
        async with client_of(finder) as client, client_of(MemoryFinder(srv)) as other:
            talk = await client.create_conversation(directory="/w")
            async with trio.open_nursery() as nursery:

                async def run() -> None:
                    try:
                        outcome.append(await talk.run("mine"))
                    except (NotPending, Stopping) as error:
                        outcome.append(error)

                await _prepare(other, talk.id, script)
                nursery.start_soon(run)
                await trio.testing.wait_all_tasks_blocked()
                finder.offline = "no network"
                finder.drop()
                await meanwhile(other.conversation(talk.id))
                finder.offline = None
            yield outcome


async def _prepare(other: Client, conversation_id: str, script: object) -> None:
    if script is HANGS:
        await other.conversation(conversation_id).send("what runs before")


async def _talk_on(talk: Conversation, turns: int) -> None:
    for number in range(turns):
        await talk.run(f"number {number}")


@pytest.mark.parametrize("turns", [1, 40, 150])
async def test_later_turns_do_not_hide_the_one_that_was_waited_for(
    autojump_clock: object, turns: int
) -> None:
    # With 150 turns behind it the message is in no snapshot, and on no first page.
    async def meanwhile(talk: Conversation) -> None:
        await _talk_on(talk, turns)

    async with _away(ONE_AFTER_ANOTHER, meanwhile) as outcome:
        (result,) = outcome
        assert isinstance(result, TurnResult)
        assert result.text == "The first."
        assert result.turn.state == "completed"


async def test_a_message_that_was_withdrawn_meanwhile_has_no_turn(autojump_clock: object) -> None:
    async def meanwhile(talk: Conversation) -> None:
        async with talk.subscribe() as updates:
            snapshot = await anext(updates)
            waiting = snapshot.sessions[0].queue[0]  # type: ignore[union-attr]  # it is the first
        await talk.withdraw_input(waiting.id)
        await talk.interrupt()
        await trio.sleep(1)

    async with _away(HANGS, meanwhile) as outcome:
        assert [type(one) for one in outcome] == [NotPending]


async def test_the_message_is_sent_once(autojump_clock: object) -> None:
    found: list[str | None] = []

    async def meanwhile(talk: Conversation) -> None:
        await talk.run("other")
        page = await talk.items()
        found.extend(item.client_id for item in page.items if isinstance(item, UserMessage))

    async with _away(ONE_AFTER_ANOTHER, meanwhile) as outcome:
        assert len(outcome) == 1
        assert len(found) == 2
        assert len(set(found)) == 2


async def test_a_conversation_that_is_deleted_has_no_end_of_a_turn(autojump_clock: object) -> None:
    async with (
        server(ScriptedModel(HANGS)) as srv,
        client_of(MemoryFinder(srv)) as client,
        trio.open_nursery() as nursery,
    ):
        talk = await client.create_conversation(directory="/w")

        async def run() -> None:
            with pytest.raises(Stopping):
                await talk.run("go")

        nursery.start_soon(run)
        await trio.sleep(1)
        await client.delete_conversation(talk.id)


@pytest.mark.parametrize("turns_between", [0, 40])
async def test_a_run_with_the_client_id_of_an_earlier_one_gives_its_turn(
    autojump_clock: object, turns_between: int
) -> None:
    # H5-3
    async with (
        server(ScriptedModel(ONE_AFTER_ANOTHER)) as srv,
        client_of(MemoryFinder(srv)) as client,
    ):
        talk = await client.create_conversation(directory="/w")
        first = await talk.run("go", client_id="mine")
        await _talk_on(talk, turns_between)
        with trio.fail_after(60):
            assert (await talk.run("go", client_id="mine")).turn.id == first.turn.id
            async with talk.subscribe():
                assert (await talk.run("go", client_id="mine")).turn.id == first.turn.id
