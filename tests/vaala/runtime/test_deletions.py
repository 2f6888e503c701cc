"""Deleting a conversation happens whole, whoever asks for it and whoever goes away meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.runtime.worlds import World, run_seeds, settle
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest, TextDelta
from vaala.runtime import Runtime
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.errors import NotDurable, NotFound, Stopping
from vaala_protocol.methods.runtime import RowRemoved, RuntimeFrame
from vaala_storage.errors import StorageFull


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    if newest(request).prompt == "hang":
        yield TextDelta("half")
        await trio.sleep_forever()
    for event in answer("fine"):
        yield event


def world() -> World:
    return World(FunctionModel(respond))


async def watch(
    talk: ConversationHandle, reasons: list[str | None], task_status: trio.TaskStatus[None]
) -> None:
    async with talk.subscribe() as updates:
        task_status.started()
        async for _ in updates:
            pass
        reasons.append(updates.reason)


async def is_gone(runtime: Runtime, talk: ConversationHandle) -> bool:
    try:
        await runtime.open_conversation(talk.id)
    except NotFound:
        return (await runtime.store.list()).rows == ()
    return False


def test_who_goes_away_does_not_tear_it() -> None:
    """Cancelled at any point: it is gone, its row too, and those who watch are told so."""

    async def story(random: Random) -> None:
        reasons: list[str | None] = []
        async with world().talk() as (runtime, talk), trio.open_nursery() as nursery:
            await talk.run("hello")
            if random.random() < 0.5:
                await talk.send("hang")
            await nursery.start(watch, talk, reasons)
            async with runtime.subscribe() as everything:
                await settle(1)
                await anext(everything)
                with trio.CancelScope() as scope:
                    nursery.start_soon(runtime.delete_conversation, talk.id)
                    async with trio.open_nursery() as leaver:
                        leaver.start_soon(runtime.delete_conversation, talk.id)
                        for _ in range(random.randrange(30)):
                            await trio.lowlevel.checkpoint()
                        scope.cancel()
                await settle(1)
                told = 0
                while (update := everything.next_nowait()) is not None:
                    told += isinstance(update, RuntimeFrame) and isinstance(
                        update.event, RowRemoved
                    )
            assert reasons == ["deleted"]
            assert told == 1
            assert await is_gone(runtime, talk)
            with pytest.raises(NotFound):
                await runtime.delete_conversation(talk.id)

    run_seeds(story, 40)


async def test_the_only_one_who_asked_may_go(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (runtime, talk):
        await talk.run("hello")
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.delete_conversation(talk.id)
        assert scope.cancelled_caught
        await settle(1)
        assert await is_gone(runtime, talk)


async def test_a_failed_deletion_leaves_it_as_it_was(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who watch are not told that it is gone, so that they come back."""
    reasons: list[str | None] = []
    async with world().talk() as (runtime, talk), trio.open_nursery() as nursery:
        await talk.run("hello")
        await nursery.start(watch, talk, reasons)

        async def fails(conversation_id: str) -> None:
            raise StorageFull("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(runtime.store, "delete", fails)
            with pytest.raises(NotDurable, match="the disk is full"):
                await runtime.delete_conversation(talk.id)
        await settle()
        assert reasons == ["closing"]
        await nursery.start(watch, talk, reasons)
        assert (await talk.run("again")).text == "fine"
        await runtime.delete_conversation(talk.id)
        await settle()
        assert reasons == ["closing", "deleted"]


async def test_a_failure_that_nobody_hears_is_logged(
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    errors_logged: list[str],
) -> None:
    async with world().talk() as (runtime, talk):
        await talk.run("hello")

        async def fails(conversation_id: str) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(runtime.store, "delete", fails)
        with pytest.raises(RuntimeError, match="a bug"):
            await runtime.delete_conversation(talk.id)
        assert errors_logged == []
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.delete_conversation(talk.id)
        await settle(1)
        assert errors_logged == [f"{talk.id}: failed, and nobody waits for it"]


async def test_who_waits_to_open_it_again_finds_it_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (runtime, talk), trio.open_nursery() as nursery:
        await talk.run("hello")
        found: list[str] = []

        async def opens() -> None:
            with pytest.raises(NotFound, match="is being deleted"):
                await runtime.open_conversation(talk.id)
            found.append("gone")

        (await runtime.conversation(talk.id)).stop()
        nursery.start_soon(opens)
        await trio.lowlevel.checkpoint()
        await runtime.delete_conversation(talk.id)
        await settle(1)
        assert found == ["gone"]


async def test_the_end_of_the_runtime_waits_for_it(autojump_clock: trio.testing.MockClock) -> None:
    here = world()
    async with here.talk() as (runtime, talk):
        await talk.run("hello")
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.delete_conversation(talk.id)
        await runtime.stop()
        with pytest.raises(Stopping):
            await runtime.delete_conversation(talk.id)
    async with here.runtime() as runtime:
        assert await is_gone(runtime, talk)
