"""What clients give can be stored and is bounded, or it is refused; it never ends an actor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
import trio.testing

from tests.vaala.runtime.driving import conversation, script
from tests.vaala.runtime.worlds import World
from vaala.dao.opening import open_store
from vaala.embed import open_runtime
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.content import text_of
from vaala_protocol.errors import BadRequest, NotFound
from vaala_protocol.items import ToolCall
from vaala_protocol.settings import Settings

LONE = "\ud800"
HUGE = "x" * 2_000_000
Given = Callable[[ConversationHandle], Awaitable[object]]


@pytest.mark.parametrize(
    "give",
    [
        lambda talk: talk.update(title=HUGE),
        lambda talk: talk.update(tags=["tag"] * 5_000),
        lambda talk: talk.update(directory=f"/tmp/{LONE}"),
        lambda talk: talk.update(directory=HUGE),
        lambda talk: talk.update(directory="/tmp/a\0b"),
        lambda talk: talk.update(directory="/tmp/" + "a" * 256),
        lambda talk: talk.update(directory="/tmp" + "/a" * 2_100),
        lambda talk: talk.send("x", client_id=LONE),
        lambda talk: talk.send("x", client_id=HUGE),
        lambda talk: talk.send("x", settings=Settings(options={"bad": object()})),
        lambda talk: talk.send("x" * 1_000_000),
        lambda talk: talk.configure(Settings(options={"bad": object()})),
        lambda talk: talk.configure(Settings(options={"text": HUGE})),
        lambda talk: talk.configure(Settings(model=LONE)),
    ],
)
async def test_what_cannot_be_stored_is_refused_and_ends_nothing(
    tmp_path: Path, errors_logged: list[str], give: Given
) -> None:
    async with conversation(script({"say": "fine"}), tmp_path) as (_, talk):
        with pytest.raises(BadRequest):
            await give(talk)
        assert (await talk.run("go on")).text == "fine"
    assert errors_logged == []


async def test_a_conversation_of_what_cannot_be_stored_is_refused() -> None:
    async with open_runtime() as runtime:
        with pytest.raises(BadRequest, match="directory"):
            await runtime.create_conversation(directory=f"/tmp/{LONE}")
        with pytest.raises(BadRequest, match="directory has a NUL"):
            await runtime.create_conversation(directory="/tmp/a\0b")
        with pytest.raises(BadRequest, match="255 between two slashes"):
            await runtime.create_conversation(directory="/tmp/" + "ä" * 128)
        with pytest.raises(BadRequest, match="title"):
            await runtime.create_conversation(title=HUGE)
        with pytest.raises(BadRequest, match="settings"):
            await runtime.create_conversation(settings=Settings(options={"bad": object()}))
        assert runtime.open_conversations == 0


async def test_titles_and_tags_are_made_storable(tmp_path: Path) -> None:
    async with (
        open_store(tmp_path) as store,
        open_runtime(storage=store, models=script({"say": "fine"})) as runtime,
    ):
        talk = await runtime.create_conversation(directory=str(tmp_path), title=f"a{LONE}")
        await talk.run("hello")
        info = await talk.update(title=f"b{LONE}\0", tags=[LONE])
        assert (info.title, info.tags) == ("b\ufffd\ufffd", ("\ufffd",))


async def looks(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    done = bool(newest(request).results)
    for event in answer("done") if done else answer("", ("list_dir", {"path": "."})):
        yield event


async def test_after_a_change_of_the_directory_tools_work_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"in-{name}").touch()
    async with conversation(FunctionModel(looks), tmp_path / "one") as (_, talk):
        await talk.run("look")
        monkeypatch.chdir(tmp_path)
        info = await talk.update(directory="two")
        assert info.locations[0].directory == str(tmp_path / "two")
        await talk.run("look")
        page = await talk.items()
        seen = [text_of(item.result) for item in page.items if isinstance(item, ToolCall)]
    assert ["in-one" in text for text in seen] == [True, False]
    assert ["in-two" in text for text in seen] == [False, True]


async def test_a_conversation_in_which_nothing_was_said_waits_for_its_first_message(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is in memory alone, so its handle would be of no use once it is closed."""
    async with World(script({"say": "fine"})).talk() as (runtime, talk):
        await trio.sleep(3600)
        assert (await talk.run("hello")).text == "fine"
        empty = await runtime.create_conversation(directory="/w")
        await trio.sleep(25 * 3600)
        assert runtime.open_conversations == 0
        with pytest.raises(NotFound):
            await empty.send("too late")
        assert (await talk.run("again")).text == "fine"
