"""Making, forking, moving and deleting conversations for clients that may ask twice."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from random import Random

import pytest
import trio
import trio.testing

import vaala
from tests.vaala.runtime.driving import script
from tests.vaala.runtime.worlds import World, all_items, run_seeds, settle
from vaala import limits
from vaala.dao.conversation_log import ConversationLog
from vaala.dao.errors import BadArchive
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest, TextDelta
from vaala.stream import Subscription
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.content import text_of
from vaala_protocol.errors import BadRequest, Busy, NotDurable, NotFound
from vaala_protocol.items import UserMessage
from vaala_protocol.state import ConversationInfo, SessionInfo, Snapshot
from vaala_storage.errors import StorageFull


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    said = newest(request)
    if said.prompt == "hang":
        yield TextDelta("half")
        await trio.sleep_forever()
    for event in answer(f"re {said.prompt}"):
        yield event


def world() -> World:
    return World(FunctionModel(respond))


async def prompts(talk: ConversationHandle) -> list[str]:
    return [text_of(i.content) for i in await all_items(talk) if isinstance(i, UserMessage)]


def test_the_same_client_id_makes_one_conversation() -> None:
    """Also when the first request is still on its way, and when it was deleted since."""

    async def story(random: Random) -> None:
        async with world().runtime() as runtime:
            made: list[str] = []

            async def make(client_id: str | None) -> None:
                for _ in range(random.randrange(4)):
                    await trio.lowlevel.checkpoint()
                talk = await runtime.create_conversation(directory="/w", client_id=client_id)
                made.append(talk.id)

            async with trio.open_nursery() as nursery:
                for client_id in ("a", "a", "a", "b", None, None):
                    nursery.start_soon(make, client_id)
            assert len(set(made)) == 4
            again = await runtime.create_conversation(directory="/w", client_id="a")
            assert again.id in made
            await again.run("hello")
            await runtime.delete_conversation(again.id)
            new = await runtime.create_conversation(directory="/w", client_id="a")
            assert new.id not in made

    run_seeds(story, 30)


def test_who_asks_again_after_going_away_finds_what_was_made() -> None:
    """Cancelled at any point of the first request."""

    async def story(random: Random) -> None:
        async with world().runtime() as runtime:
            async with trio.open_nursery() as nursery:
                make = partial(runtime.create_conversation, directory="/w", client_id="a")
                nursery.start_soon(make)
                for _ in range(random.randrange(12)):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            talk = await make()
            await settle()
            assert [one.id for one in runtime.status()] == [talk.id]

    run_seeds(story, 30)


async def test_a_slow_creation_holds_up_no_other(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world().runtime() as runtime, trio.open_nursery() as nursery:
        create, go = runtime.store.create, trio.Event()

        async def slow(info: ConversationInfo, root: SessionInfo) -> ConversationLog:
            if info.title == "slow":
                await go.wait()
            return await create(info, root)

        monkeypatch.setattr(runtime.store, "create", slow)
        nursery.start_soon(
            partial(runtime.create_conversation, directory="/w", title="slow", client_id="a")
        )
        await settle()
        with trio.fail_after(1):
            await runtime.create_conversation(directory="/w", client_id="b")
        go.set()


async def test_remembered_client_ids_are_bounded(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CREATED_REMEMBERED_MAX", 3)
    async with world().runtime() as runtime:
        first = await runtime.create_conversation(directory="/w", client_id="0")
        for number in range(1, 4):
            await runtime.create_conversation(directory="/w", client_id=str(number))
        assert (await runtime.create_conversation(directory="/w", client_id="0")).id != first.id
        with pytest.raises(BadRequest, match="the client id"):
            await runtime.create_conversation(directory="/w", client_id="x" * 1_000)


async def test_a_fork_ends_with_a_turn_and_goes_its_own_way(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (runtime, talk):
        turns = [(await talk.run(prompt)).turn.id for prompt in ("one", "two", "three")]
        await talk.send("hang")
        await settle(1)
        running = (await talk.status()).sessions[0].turn_id
        whole = await runtime.fork_conversation(talk.id)
        assert (await whole.info()).fork_parent == talk.id
        assert await prompts(whole) == ["one", "two", "three"]
        for turn_id, expected in zip(turns, (["one"], ["one", "two"]), strict=False):
            fork = await runtime.fork_conversation(talk.id, turn_id)
            assert await prompts(fork) == expected
            assert (await fork.status()).status == "idle"
            assert (await fork.run("more")).text == "re more"
            assert await prompts(fork) == [*expected, "more"]
        assert await prompts(talk) == ["one", "two", "three", "hang"]
        with pytest.raises(Busy, match="has not ended"):
            await runtime.fork_conversation(talk.id, running)
        with pytest.raises(NotFound, match="no turn 'nothing'"):
            await runtime.fork_conversation(talk.id, "nothing")
        with pytest.raises(NotFound):
            await runtime.fork_conversation("nobody")
        empty = await runtime.create_conversation(directory="/w")
        with pytest.raises(Busy):
            await runtime.fork_conversation(empty.id)


async def test_an_archive_comes_back_as_another_conversation(tmp_path: Path) -> None:
    async with vaala.open_runtime(models=script({"say": "noted"})) as runtime:
        talk = await runtime.create_conversation(directory=str(tmp_path))
        await talk.run("remember")
        path = tmp_path / "talk.tar.gz"
        size = await runtime.export_conversation(talk.id, str(path))
        assert path.stat().st_size == size > 0
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(BadRequest, match="there already"):
            await runtime.export_conversation(talk.id, str(path))
        assert path.stat().st_size == size
        again = await runtime.import_conversation(str(path))
        assert again.id != talk.id
        assert await prompts(again) == ["remember"]
        with pytest.raises(BadRequest, match="say in which directory"):
            await again.run("more")
        await again.update(directory=str(tmp_path))
        assert (await again.run("more")).turn.state == "completed"


async def test_what_cannot_be_exported_leaves_no_file(tmp_path: Path) -> None:
    async with vaala.open_runtime(models=script({"say": "noted"})) as runtime:
        talk = await runtime.create_conversation(directory=str(tmp_path))
        path = tmp_path / "talk.tar.gz"
        with pytest.raises(NotFound):
            await runtime.export_conversation("nobody", str(path))
        assert not path.exists()
        for bad in ("talk.tar.gz", "/x\0y", str(tmp_path / "none" / "x")):
            with pytest.raises(BadRequest):
                await runtime.export_conversation(talk.id, bad)
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.export_conversation(talk.id, str(path))
        assert scope.cancelled_caught
        assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
async def test_a_full_disk_is_told_and_the_half_file_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(path: Path) -> object:
        path.touch()
        return open("/dev/full", "wb")

    monkeypatch.setattr("vaala.transfer._create", create)
    async with vaala.open_runtime(models=script({"say": "noted"})) as runtime:
        talk = await runtime.create_conversation(directory=str(tmp_path))
        await talk.run("remember")
        path = tmp_path / "talk.tar.gz"
        with pytest.raises(NotDurable, match="No space left"):
            await runtime.export_conversation(talk.id, str(path))
        assert not path.exists()


async def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    async with vaala.open_runtime() as runtime:
        for bad in ("relative", str(tmp_path), str(tmp_path / "none"), "/x\0y"):
            with pytest.raises(BadRequest):
                await runtime.import_conversation(bad)
        path = tmp_path / "bad.tar.gz"
        path.write_bytes(b"nothing of ours")
        with pytest.raises(BadArchive):
            await runtime.import_conversation(str(path))


async def test_a_failing_store_is_told_when_it_forks_or_deletes(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world().talk() as (runtime, talk):
        await talk.run("hello")

        async def fails(*_: object, **__: object) -> str:
            raise StorageFull("the disk is full")

        monkeypatch.setattr(runtime.store, "fork", fails)
        with pytest.raises(NotDurable, match="could not be forked: the disk is full"):
            await runtime.fork_conversation(talk.id)
        monkeypatch.setattr(runtime.store, "delete", fails)
        with pytest.raises(NotDurable, match="could not be deleted"):
            await runtime.delete_conversation(talk.id)
        assert (await talk.run("again")).text == "re again"  # it is still there


async def reason_of(subscription: Subscription) -> str | None:
    async for _ in subscription:
        pass
    return subscription.reason


async def test_watchers_are_told_why_it_ends(
    autojump_clock: trio.testing.MockClock, errors_logged: list[str]
) -> None:
    reasons: dict[str, str | None] = {}

    async def watch(talk: ConversationHandle, task_status: trio.TaskStatus[None]) -> None:
        async with talk.subscribe() as updates:
            task_status.started()
            reasons[talk.id] = await reason_of(updates)

    async with trio.open_nursery() as nursery, world().runtime() as runtime:
        deleted, empty, crashed, closed = [
            await runtime.create_conversation(directory="/w") for _ in range(4)
        ]
        for talk in (deleted, empty, crashed, closed):
            await nursery.start(watch, talk)
        await deleted.run("hello")
        await runtime.delete_conversation(deleted.id)
        await runtime.delete_conversation(empty.id)
        with pytest.raises(NotFound):
            await runtime.open_conversation(empty.id)
        actor = await runtime.conversation(crashed.id)
        await crashed.run("hello")
        actor.report("no message")  # type: ignore[arg-type] # a bug, as it might be
        await settle(1)
        assert reasons == {deleted.id: "deleted", empty.id: "deleted", crashed.id: "crashed"}
        async with crashed.subscribe() as updates:
            assert isinstance(await anext(updates), Snapshot)
            assert await prompts(crashed) == ["hello"]
        await runtime.stop()
        await settle()
        assert reasons[closed.id] == "closing"
    assert len(errors_logged) == 1


async def test_nobody_opens_what_is_being_deleted(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (runtime, talk):
        await talk.run("hello")
        await talk.send("hang")
        await settle(1)
        found: list[str] = []

        async def opens() -> None:
            while True:
                try:
                    await runtime.open_conversation(talk.id)
                except NotFound:
                    found.append("gone")
                    return
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(opens)
            await runtime.delete_conversation(talk.id)
        assert found == ["gone"]
        with pytest.raises(NotFound):
            await runtime.delete_conversation(talk.id)
