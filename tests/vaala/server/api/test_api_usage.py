"""What conversations used and cost: by turn, session and model, with what failed and is unknown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

import pytest

from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import Client, Server, machine, server
from vaala.changes import now_ms
from vaala.models.base import FirstByte, ModelEvent, ModelFailure, ModelRequest, UsageReport
from vaala.models.catalogue.facts import Known, ModelFacts
from vaala.models.scripted import ScriptedModel
from vaala_protocol.errors import NotFound
from vaala_protocol.methods.conversation import (
    ConversationDeleteParams,
    ConversationForkParams,
    ConversationUsageParams,
)
from vaala_protocol.methods.runtime import RuntimeUsageParams
from vaala_protocol.prices import Cost, LongPrices, ModelPrices
from vaala_protocol.settings import Usage
from vaala_protocol.usage import ContextFill, ConversationSpent, ModelUsage, Spent

PRICES = ModelPrices(
    input="1", output="10",
    long=LongPrices(above_tokens=1000, input="2", output="20"),
)  # fmt: skip
PRICED = Known(ModelFacts(window=8000, prices=PRICES))
CALL = {"say": "ok", "usage": {"input": 900, "output": 10}}
DEAR = {"say": "ok", "usage": {"input": 2000, "output": 10}}
LOOK = {"call": [{"tool": "list_dir", "arguments": {"path": "."}}], **CALL, "say": ""}


@asynccontextmanager
async def served(model: ScriptedModel) -> AsyncGenerator[tuple[Server, Client]]:
    async with server(model, executors=machine()) as one, one.client() as client:
        one.keeper.facts[model.name] = PRICED
        yield one, client


async def talk(one: Server, client: Client, *texts: str) -> str:
    """Have a turn for each text."""
    conversation_id = await client.create()
    for text in texts:
        await _turn(one, conversation_id, text)
    return conversation_id


async def _turn(one: Server, conversation_id: str, text: str) -> None:
    handle = await one.runtime.open_conversation(conversation_id)
    await handle.run(text)


async def usage(
    client: Client, conversation_id: str, since: int | None = None
) -> ConversationSpent:
    return await client.call(ConversationUsageParams(conversation_id=conversation_id, since=since))


async def test_turns_sessions_and_the_whole_are_told_with_their_cost(
    autojump_clock: object,
) -> None:
    async with served(script(LOOK, CALL, DEAR)) as (one, client):
        id = await talk(one, client, "first", "second")
        found = await usage(client, id)
        whole = Usage(input=3800, output=30)
        # Two short calls, and a long one.
        price = Cost(usd="0.0062")
        model = ModelUsage(model="scripted", usage=whole, cost=price)
        assert found.spent == Spent(usage=whole, cost=price, models=(model,))
        assert (found.id, found.title, found.turns) == (id, "first", 2)
        (session,) = found.sessions
        assert (session.id, session.spent) == (id, found.spent)
        # The newest call had 2,010 tokens, whatever all of them had together.
        assert session.context == ContextFill(model="scripted", tokens=2010, window=8000)
        newest, oldest = found.newest
        assert (newest.spent.cost, oldest.spent.cost) == (Cost(usd="0.0042"), Cost(usd="0.002"))
        assert (newest.session_id, newest.state) == (id, "completed")
        assert newest.started_at >= oldest.started_at


async def test_a_model_without_a_price_is_never_free(autojump_clock: object) -> None:
    async with served(script(CALL)) as (one, client):
        one.keeper.facts.clear()
        id = await talk(one, client, "first")
        found = await usage(client, id)
        assert found.spent.usage == Usage(input=900, output=10)
        assert (found.spent.cost, found.spent.models[0].cost) == (None, None)
        assert found.sessions[0].context == ContextFill(model="scripted", tokens=910)


class Breaking(ScriptedModel):
    """Breaks in its first call, after it has told what that used."""

    broken = False

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if not self.broken:
            self.broken = True
            yield self._break()
            return
        async with super().stream(request) as events:
            yield events

    async def _break(self) -> AsyncGenerator[ModelEvent]:
        yield FirstByte()
        yield UsageReport(Usage(input=500))
        raise ModelFailure("network", "the connection broke", retryable=True)


async def test_what_a_failed_call_used_is_counted(autojump_clock: object) -> None:
    async with served(Breaking({"steps": [CALL]})) as (one, client):
        id = await talk(one, client, "first")
        (turn,) = (await usage(client, id)).newest
        assert turn.spent.usage == Usage(input=1400, output=10)
        assert turn.spent.cost == Cost(usd="0.0015")


async def test_a_turn_that_runs_is_counted_by_its_steps(autojump_clock: object) -> None:
    async with served(script(LOOK, {"say": "more", "hang": True})) as (_, client):
        id = await client.create()
        await client.watch(id)
        await client.send(id, "first")
        await client.hear(lambda note: getattr(note, "frame", None) and _says(note, "more"))
        (turn,) = (await usage(client, id)).newest
        assert turn.state == "running"
        assert turn.spent.usage == Usage(input=900, output=10)


def _says(note: object, text: str) -> bool:
    return text in str(getattr(getattr(note, "frame", None), "event", ""))


async def test_a_copy_counts_what_it_used_itself(autojump_clock: object) -> None:
    async with served(script(CALL, CALL)) as (one, client):
        id = await talk(one, client, "first")
        _next_millisecond()
        copy = (await client.call(ConversationForkParams(conversation_id=id))).id
        inherited = await usage(client, copy)
        assert (inherited.turns, inherited.spent, inherited.sessions) == (0, Spent(), ())
        await _turn(one, copy, "second")
        page = await client.call(RuntimeUsageParams())
        assert {row.id: row.turns for row in page.conversations} == {id: 1, copy: 1}


def _next_millisecond() -> None:
    """Let the clock that entries have their times from go on by its smallest step."""
    now = now_ms()
    while now_ms() == now:
        pass


async def test_all_conversations_are_told_page_by_page(autojump_clock: object) -> None:
    async with served(script(CALL)) as (one, client):
        ids = [await talk(one, client, f"number {number}") for number in range(3)]
        first = await client.call(RuntimeUsageParams(limit=2))
        second = await client.call(RuntimeUsageParams(limit=2, cursor=first.cursor))
        rows = (*first.conversations, *second.conversations)
        assert {row.id for row in rows} == set(ids)
        assert (first.cursor is not None, second.cursor) == (True, None)
        assert all(row.spent.cost == Cost(usd="0.001") and not row.newest for row in rows)
        await client.call(ConversationDeleteParams(conversation_id=ids[0]))
        left = await client.call(RuntimeUsageParams())
        assert {row.id for row in left.conversations} == set(ids[1:])
        with pytest.raises(NotFound):
            await usage(client, ids[0])


async def test_only_what_is_not_older_is_counted(autojump_clock: object) -> None:
    async with served(script(CALL)) as (one, client):
        id = await talk(one, client, "first", "second")
        newest, oldest = (await usage(client, id)).newest
        assert (await usage(client, id, since=oldest.started_at)).turns == 2
        later = newest.started_at + 60_000
        assert (await usage(client, id, since=later)) == ConversationSpent(
            id=id, title="first", updated_at=(await usage(client, id)).updated_at
        )
        assert (await client.call(RuntimeUsageParams(since=later))).conversations == ()
        page = await client.call(RuntimeUsageParams(since=oldest.started_at))
        assert [Decimal(row.spent.cost.usd) for row in page.conversations if row.spent.cost] == [
            Decimal("0.002")
        ]
