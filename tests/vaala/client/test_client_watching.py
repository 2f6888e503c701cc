"""Subscriptions over connections that come and go: no gap, no repeat, and no more than needed."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.vaala.client.meeting import MemoryFinder, client_of
from tests.vaala.server.api.serving import server
from vaala.client import Disconnected, Reader
from vaala.models.scripted import ScriptedModel
from vaala.testing.projection import Projection
from vaala_protocol.errors import NotFound
from vaala_protocol.events import Frame
from vaala_protocol.items import AssistantMessage
from vaala_protocol.methods.runtime import RuntimeSnapshot
from vaala_protocol.state import Snapshot

SLOW = {"steps": [{"say": "one two three four five six", "chunk": 4, "pace_s": 1.0}]}
LONG = {"steps": [{"say": "x" * 6_000, "chunk": 4, "pace_s": 0.001}]}
QUICK = {"steps": [{"say": "Hello."}]}


async def _until_idle(updates: Reader[Snapshot, Frame], state: Projection) -> None:
    """Apply updates until a turn has ended."""
    async for update in updates:
        state.apply(update)
        turn = state.state.sessions[0].turn
        if turn is not None and turn.state != "running":
            return


def _last_words(state: Projection) -> str:
    last = state.state.sessions[0].items[-1]
    assert isinstance(last, AssistantMessage)
    return last.text


async def test_frames_go_on_where_they_ended(autojump_clock: object) -> None:
    # H1-1: away for 3 s in the midst of a text
    async with server(ScriptedModel(SLOW)) as srv:
        finder = MemoryFinder(srv)
        async with client_of(finder) as client:
            talk = await client.create_conversation(directory="/w")
            state, snapshots = Projection(), 0
            async with talk.subscribe() as updates, trio.open_nursery() as nursery:
                await talk.send("go")

                async def interfere() -> None:
                    await trio.sleep(2.5)
                    finder.offline = "no network"
                    finder.drop()
                    await trio.sleep(3)
                    finder.offline = None

                nursery.start_soon(interfere)
                async for update in updates:
                    state.apply(update)
                    snapshots += isinstance(update, Snapshot)
                    turn = state.state.sessions[0].turn
                    if turn is not None and turn.state != "running":
                        break
            assert snapshots == 1
            assert _last_words(state) == SLOW["steps"][0]["say"]
            assert len(finder.channels) == 2


async def test_a_place_that_is_too_old_becomes_a_snapshot(autojump_clock: object) -> None:
    # H1-2: more happens than the server keeps
    async with server(ScriptedModel(LONG)) as srv:
        away, steady = MemoryFinder(srv), MemoryFinder(srv)
        async with client_of(away) as client, client_of(steady) as driver:
            talk = await client.create_conversation(directory="/w")
            state = Projection()
            async with talk.subscribe() as updates:
                state.apply(await anext(updates))
                away.offline = "no network"
                away.drop()
                await driver.conversation(talk.id).run("go")
                away.offline = None
                first = await anext(updates)
                while isinstance(first, Frame):  # what had come before the drop
                    state.apply(first)
                    first = await anext(updates)
                state.apply(first)
            assert _last_words(state) == "x" * 6_000


async def test_many_reconnects_cost_no_more_than_what_is_new(autojump_clock: object) -> None:
    # H1-5
    async with server(ScriptedModel(SLOW)) as srv:
        finder = MemoryFinder(srv)
        async with client_of(finder) as client:
            talk = await client.create_conversation(directory="/w")
            kinds: list[type] = []
            async with talk.subscribe() as updates, trio.open_nursery() as nursery:

                async def drop_often() -> None:
                    for _ in range(200):
                        await trio.testing.wait_all_tasks_blocked()
                        finder.drop()
                        await trio.sleep(0.06)

                nursery.start_soon(drop_often)
                await talk.run("go")
                while (update := updates.next_nowait()) is not None:
                    kinds.append(type(update))
            assert kinds.count(Snapshot) == 1


async def test_two_readers_share_a_subscription_and_each_gets_everything(
    autojump_clock: object,
) -> None:
    async with server(ScriptedModel(SLOW)) as srv, client_of(MemoryFinder(srv)) as client:
        talk = await client.create_conversation(directory="/w")
        states = Projection(), Projection()
        async with talk.subscribe() as one:
            await talk.send("go")
            states[0].apply(await anext(one))
            await trio.sleep(3.5)
            async with talk.subscribe() as two:
                # H1-4: what happens between the snapshot and its first frame is not lost
                await trio.sleep(1)
                await _until_idle(two, states[1])
            await _until_idle(one, states[0])
        assert states[0].state == states[1].state


async def test_nobody_watches_when_nobody_reads(autojump_clock: object) -> None:
    async with server(ScriptedModel(QUICK)) as srv, client_of(MemoryFinder(srv)) as client:
        talk = await client.create_conversation(directory="/w")
        for _ in range(3):
            async with talk.subscribe() as updates:
                assert isinstance(await anext(updates), Snapshot)
                (activity,) = srv.runtime.status()
                assert activity.subscribers == 1
            await trio.testing.wait_all_tasks_blocked()
            (activity,) = srv.runtime.status()
            assert activity.subscribers == 0


async def test_what_is_not_there_cannot_be_watched(autojump_clock: object) -> None:
    async with server() as srv, client_of(MemoryFinder(srv)) as client:
        talk = client.conversation("01a22f19-a90c-7685-8836-2ea488a1359c")
        with pytest.raises(NotFound):
            async with talk.subscribe():
                pass


async def test_a_deleted_conversation_ends_its_readers(autojump_clock: object) -> None:
    async with server(ScriptedModel(QUICK)) as srv, client_of(MemoryFinder(srv)) as client:
        talk = await client.create_conversation(directory="/w")
        await talk.run("go")
        async with talk.subscribe() as updates:
            await client.delete_conversation(talk.id)
            async for _ in updates:
                pass
        with pytest.raises(NotFound):
            async with talk.subscribe():
                pass


async def test_a_server_that_was_given_up_ends_readers_with_an_error(
    autojump_clock: object,
) -> None:
    async with server() as srv:
        finder = MemoryFinder(srv)
        async with client_of(finder) as client:
            talk = await client.create_conversation(directory="/w")
            async with talk.subscribe() as updates:
                assert isinstance(await anext(updates), Snapshot)
                finder.offline = "nobody listens"
                finder.drop()
                with pytest.raises(Disconnected, match="nobody listens"):
                    await anext(updates)


async def test_all_conversations_can_be_watched_over_reconnects(autojump_clock: object) -> None:
    async with server(ScriptedModel(QUICK)) as srv:
        finder = MemoryFinder(srv)
        async with client_of(finder) as client, client.subscribe() as updates:
            first = await anext(updates)
            assert isinstance(first, RuntimeSnapshot)
            finder.drop()
            talk = await client.create_conversation(directory="/w")
            await talk.run("go")
            finder.drop()
            async for update in updates:
                if talk.id in str(update):
                    break
