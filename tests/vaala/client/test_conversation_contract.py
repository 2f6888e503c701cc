"""One contract for conversations here and in a server: `vaala.interface`, over three ways there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeAlias

import pytest
import trio
import trio.testing

import vaala
from tests.vaala.client.meeting import MemoryFinder, client_of, door_of
from tests.vaala.server.api.serving import server
from vaala.interface import Catalog, Conversation, Conversations, Updates
from vaala.models.base import Model
from vaala.models.scripted import ScriptedModel
from vaala.testing.projection import Projection
from vaala_protocol.errors import BadRequest, Busy, NotFound, NotPending
from vaala_protocol.items import Approval, AssistantMessage, ContextSummary, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import Snapshot

Place: TypeAlias = tuple[Conversations, Catalog]
Open: TypeAlias = Callable[[Model], AbstractAsyncContextManager[Place]]

TALK = {"steps": [{"say": "One."}, {"say": "Two."}]}
HANGS = {"steps": [{"say": "I begin.", "hang": True}]}
ASKS = {
    "steps": [
        {"call": {"tool": "exec_command", "arguments": {"command": "echo hi"}, "as": "echo"}},
        {"say": "It said: {{ results.echo | first_line }}"},
    ]
}


@asynccontextmanager
async def _embedded(model: Model) -> AsyncGenerator[Place]:
    async with vaala.open_runtime(models=model) as runtime:
        yield runtime, runtime.store


@asynccontextmanager
async def _in_memory(model: Model) -> AsyncGenerator[Place]:
    async with server(model) as srv, client_of(MemoryFinder(srv)) as client:
        yield client, client


@asynccontextmanager
async def _websocket(model: Model) -> AsyncGenerator[Place]:
    async with (
        server(model) as srv,
        door_of(srv) as door,
        client_of(door.direct()) as client,
    ):
        yield client, client


@pytest.fixture(params=[_embedded, _in_memory, _websocket], ids=lambda way: way.__name__)
def place(request: pytest.FixtureRequest) -> Open:
    way: Open = request.param
    return way


async def _state(updates: Updates, found: Callable[[Projection], bool]) -> Projection:
    """Apply updates until the state is as it should be."""
    state = Projection()
    with trio.fail_after(20):
        async for update in updates:
            state.apply(update)
            if found(state):
                return state
    raise AssertionError("the updates ended")


def _pending(state: Projection) -> list[Approval]:
    (session,) = state.state.sessions
    return [
        item for item in session.items if isinstance(item, Approval) and item.state == "pending"
    ]


def _has_begun(state: Projection) -> bool:
    return any(part.text == "I begin." for part in state.state.sessions[0].live)


async def _talk(conversations: Conversations) -> Conversation:
    settings = Settings(mode="full")
    return await conversations.create_conversation(directory="/tmp", settings=settings)


async def test_run_returns_how_the_turn_ended(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, _):
        talk = await _talk(conversations)
        for text in ("One.", "Two."):
            result = await talk.run("go")
            assert (result.text, result.turn.state, result.turn.stop_reason) == (
                text, "completed", "end_turn",
            )  # fmt: skip


async def test_a_turn_is_found_again(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, _):
        talk = await _talk(conversations)
        results = [await talk.run("go") for _ in range(2)]
        assert [await talk.turn(result.turn.id) for result in results] == results
        with pytest.raises(NotFound, match="has no turn 01a22f19"):
            await talk.turn("01a22f19-a90c-7685-8836-2ea488a1359c")
        with pytest.raises(NotFound, match="no session"):
            await talk.turn(results[0].turn.id, session_id="nobody")


async def test_a_conversation_is_compacted_when_no_turn_runs(place: Open) -> None:
    script = {"steps": [{"say": "A summary."}, {"say": "Two.", "hang": True}]}
    async with place(ScriptedModel(script)) as (conversations, _):
        talk = await _talk(conversations)
        with pytest.raises(BadRequest, match="nothing to compact"):
            await talk.compact()
        await talk.run("go")
        async with talk.subscribe() as updates:
            begun = await talk.compact()
            assert begun.state == "running"
            state = await _state(updates, lambda state: _ended(state, begun.id))
        (summary,) = [
            item for item in state.state.sessions[0].items if isinstance(item, ContextSummary)
        ]
        assert summary.text == "A summary."
        done = (await talk.turn(begun.id)).turn
        assert (done.state, done.steps) == ("completed", 0)
        assert done.message.startswith("Compacted from about ")
        assert done.usage == {"scripted": summary.usage}
        with pytest.raises(BadRequest, match="nothing to compact"):
            await talk.compact()
        await talk.run("go")
        await talk.send("go")
        with pytest.raises(Busy, match="a turn is running"):
            await talk.compact()


def _ended(state: Projection, turn_id: str) -> bool:
    turn = state.state.sessions[0].turn
    return turn is not None and turn.id == turn_id and turn.state != "running"


async def test_updates_that_end_tell_why(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, _):
        talk = await _talk(conversations)
        await talk.run("go")
        async with talk.subscribe() as updates:
            assert updates.reason is None
            await conversations.delete_conversation(talk.id)
            with trio.fail_after(20):
                async for _update in updates:
                    pass
            assert updates.reason == "deleted"


async def test_the_same_client_id_is_one_message(place: Open) -> None:
    # H5-3
    async with place(ScriptedModel(HANGS)) as (conversations, _):
        talk = await _talk(conversations)
        first = await talk.send("go", client_id="mine")
        again = await talk.send("go", client_id="mine")
        assert again.id == first.id
        page = await talk.items()
        assert [item.client_id for item in page.items if isinstance(item, UserMessage)] == ["mine"]


async def test_a_run_with_the_client_id_of_an_ended_one_gives_its_turn(place: Open) -> None:
    # H5-3
    async with place(ScriptedModel(TALK)) as (conversations, _):
        talk = await _talk(conversations)
        first = await talk.run("go", client_id="mine")
        await talk.run("go on")
        with trio.fail_after(20):
            again = await talk.run("go", client_id="mine")
        assert (again.turn.id, again.text) == (first.turn.id, "One.")


async def test_runs_beside_a_watcher_know_the_ends_of_their_turns(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, _):
        talk = await _talk(conversations)
        async with talk.subscribe() as updates, trio.open_nursery() as nursery:
            nursery.start_soon(_state, updates, _has_two_answers)
            with trio.fail_after(20):
                assert (await talk.run("go")).text == "One."
                assert (await talk.run("go on")).text == "Two."


def _has_two_answers(state: Projection) -> bool:
    items = state.state.sessions[0].items
    return sum(isinstance(item, AssistantMessage) for item in items) == 2


async def test_an_interrupt_ends_the_turn_that_run_waits_for(place: Open) -> None:
    async with place(ScriptedModel(HANGS)) as (conversations, _):
        talk = await _talk(conversations)
        assert not await talk.interrupt()
        async with talk.subscribe() as updates, trio.open_nursery() as nursery:

            async def run() -> None:
                result = await talk.run("go")
                assert (result.turn.interrupted_by, result.text) == ("user", "I begin.")
                assert await talk.turn(result.turn.id) == result

            nursery.start_soon(run)
            state = await _state(updates, _has_begun)
            turn = state.state.sessions[0].turn
            assert turn is not None
            assert not await talk.interrupt("01a22f19-a90c-7685-8836-2ea488a1359c")
            assert await talk.interrupt(turn.id)


async def test_a_message_that_waits_can_be_changed_and_taken_back(place: Open) -> None:
    # H5-4
    async with place(ScriptedModel(HANGS)) as (conversations, _):
        talk = await _talk(conversations)
        await talk.send("go")
        waiting = [await talk.send(text) for text in ("first", "second")]
        edited = await talk.edit_input(waiting[0].id, "changed")
        assert edited.source != waiting[0].source
        await talk.move_input(waiting[1].id, before=waiting[0].id)
        async with talk.subscribe() as updates:
            snapshot = await anext(updates)
            assert isinstance(snapshot, Snapshot)
            assert [one.id for one in snapshot.sessions[0].queue] == [
                waiting[1].id, waiting[0].id,
            ]  # fmt: skip
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                with pytest.raises(NotPending, match="withdrawn"):
                    await talk.run("third")

            async with talk.subscribe() as updates:
                nursery.start_soon(run)
                state = await _state(updates, lambda state: len(state.state.sessions[0].queue) == 3)
            assert (await talk.withdraw_input(state.state.sessions[0].queue[2].id)).state == (
                "withdrawn"
            )
        with pytest.raises(NotPending):
            await talk.withdraw_input(state.state.sessions[0].queue[2].id)


async def test_an_approval_is_answered_once(place: Open) -> None:
    # H3-1, H3-2
    async with place(ScriptedModel(ASKS)) as (conversations, _):
        talk = await conversations.create_conversation(directory="/tmp")
        async with talk.subscribe() as updates, trio.open_nursery() as nursery:
            texts: list[str] = []

            async def run() -> None:
                texts.append((await talk.run("go")).text)

            nursery.start_soon(run)
            state = await _state(updates, lambda state: bool(_pending(state)))
            (approval,) = _pending(state)
            option = next(one.id for one in approval.options if one.kind == "allow_once")
            await talk.answer_approval(approval.id, option)
            with pytest.raises(NotPending):
                await talk.answer_approval(approval.id, option)
        assert texts == ["It said: hi"]


async def test_settings_and_the_record_can_be_changed(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, catalog):
        talk = await _talk(conversations)
        assert (await talk.configure(Settings(mode="read-only"))).mode == "read-only"
        await talk.run("go")
        info = await talk.update(title="A name", tags=["red"], archived=True, directory="/usr")
        assert (info.title, info.tags, info.archived) == ("A name", ("red",), True)
        assert info.locations[0].directory == "/usr"
        assert (await talk.info()).title == "A name"
        row = await catalog.get(talk.id)
        assert row is not None
        assert row.info.title == "A name"
        with pytest.raises(BadRequest):
            await talk.send("")


@pytest.mark.parametrize("limit", [0, -3, 1_001])
async def test_a_page_of_nothing_or_of_everything_is_refused(place: Open, limit: int) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, catalog):
        talk = await _talk(conversations)
        await talk.run("go")
        for ask in (
            partial(talk.items, limit=limit),
            partial(catalog.list, limit=limit),
            partial(catalog.search, "go", limit=limit),
        ):
            with pytest.raises(BadRequest, match=f"limit must be 1 to 1,000, not {limit}") as got:
                await ask()
            assert got.value.field == "limit"


async def test_the_transcript_comes_in_pages(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, catalog):
        talk = await _talk(conversations)
        await talk.run("go")
        await talk.run("on")
        newest = await talk.items(limit=1)
        assert newest.earlier
        (item,) = newest.items
        assert isinstance(item, AssistantMessage)
        before = await talk.items(before=item.at)
        assert [type(one) for one in before.items] == [UserMessage, AssistantMessage, UserMessage]
        assert not before.earlier
        page = await catalog.list()
        assert [row.id for row in page.rows] == [talk.id]
        found = await catalog.search("on")
        assert {one.conversation.id for one in found.results} == {talk.id}


async def test_conversations_end_and_begin(place: Open, tmp_path: object) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, catalog):
        talk = await _talk(conversations)
        await talk.run("go")
        fork = await conversations.fork_conversation(talk.id)
        assert fork.id != talk.id
        archive = f"{tmp_path}/talk.archive"
        assert await conversations.export_conversation(talk.id, archive) > 0
        copy = await conversations.import_conversation(archive)
        assert len((await copy.items()).items) == 2
        await conversations.delete_conversation(talk.id)
        assert await catalog.get(talk.id) is None
        with pytest.raises(NotFound):
            await conversations.open_conversation(talk.id)
        with pytest.raises(NotFound):
            await talk.run("go")


async def test_the_same_client_id_makes_one_conversation(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, _):
        first = await conversations.create_conversation(directory="/tmp", client_id="one")
        again = await conversations.create_conversation(directory="/tmp", client_id="one")
        assert again.id == first.id


async def test_updates_end_with_the_conversation(place: Open) -> None:
    async with place(ScriptedModel(TALK)) as (conversations, _):
        talk = await _talk(conversations)
        await talk.run("go")
        async with talk.subscribe() as updates:
            assert isinstance(await anext(updates), Snapshot)
            assert updates.next_nowait() is None
            await conversations.delete_conversation(talk.id)
            with trio.fail_after(20):
                async for _ in updates:
                    pass
