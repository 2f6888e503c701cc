"""How many conversations may be open, and which of them end for others."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import script
from tests.vaala.runtime.worlds import World, settle
from vaala import limits
from vaala.handle import ConversationHandle
from vaala.runtime import Runtime
from vaala_protocol.errors import NotFound
from vaala_protocol.items import UserMessage


async def made(runtime: Runtime, count: int, *, said: bool = False) -> list[ConversationHandle]:
    """Make conversations, one a second."""
    talks = []
    for _ in range(count):
        talks.append(await runtime.create_conversation(directory="/w"))
        if said:
            await talks[-1].send("hello")
        await settle(1)
    return talks


def open_of(runtime: Runtime, talks: list[ConversationHandle]) -> list[int]:
    ids = {one.id for one in runtime.status()}
    return [number for number, talk in enumerate(talks) if talk.id in ids]


async def test_empty_conversations_are_bounded(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest unused one goes, unless it is watched or was asked for something just now."""
    monkeypatch.setattr(limits, "EMPTY_CONVERSATIONS_MAX", 3)
    async with World(script({"say": "fine"})).runtime() as runtime:
        talks = await made(runtime, 3)
        async with talks[0].subscribe():
            await talks[1].update(title="not yet")
            await settle(1)
            talks += await made(runtime, 1)
            assert open_of(runtime, talks) == [0, 1, 3]
        with pytest.raises(NotFound):
            await talks[2].info()
        talks += [await runtime.create_conversation(directory="/w") for _ in range(3)]
        await settle()
        # Those of this moment are safe for now.
        assert open_of(runtime, talks) == [4, 5, 6]


async def test_one_in_which_something_was_said_is_not_empty(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EMPTY_CONVERSATIONS_MAX", 2)
    async with World(script(*[{"say": "fine"}] * 5)).runtime() as runtime:
        talks = await made(runtime, 5, said=True)
        assert open_of(runtime, talks) == [0, 1, 2, 3, 4]


async def test_open_conversations_are_bounded(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that run, or that somebody watches, stay; the others are opened again when needed."""
    monkeypatch.setattr(limits, "OPEN_CONVERSATIONS_MAX", 8)
    steps = [{"say": "fine"}] * 8
    async with World(script(*steps, {"hang": True})).runtime() as runtime:
        talks = await made(runtime, 8, said=True)
        await talks[0].send("hang")
        await settle(1)
        assert open_of(runtime, talks) == list(range(8))
        async with talks[1].subscribe():
            talks += await made(runtime, 1)
            # More than needed end, so that the next openings cost no search.
            assert open_of(runtime, talks) == [0, 1, 4, 5, 6, 7, 8]
        page = await talks[2].items()
        assert any(isinstance(item, UserMessage) for item in page.items)
        assert 2 in open_of(runtime, talks)


async def test_what_was_just_asked_for_something_stays(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OPEN_CONVERSATIONS_MAX", 2)
    async with World(script({"say": "fine"})).runtime() as runtime:
        talks = [await runtime.create_conversation(directory="/w") for _ in range(4)]
        await settle()
        assert open_of(runtime, talks) == [0, 1, 2, 3]
        await settle(limits.REQUEST_ON_ITS_WAY_S)
        talks += await made(runtime, 1)
        assert open_of(runtime, talks) == [4]
