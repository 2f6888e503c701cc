"""A turn on a file system that is really full; needs the right to mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from tests.vaala.runtime.driving import calls, is_turn, script, until
from vaala.dao.opening import open_store
from vaala.embed import open_runtime
from vaala.stream import Update
from vaala_protocol.content import text_of
from vaala_protocol.errors import NotDurable
from vaala_protocol.events import Frame, Unsaved
from vaala_protocol.items import UserMessage
from vaala_protocol.settings import Settings


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a file system is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> Path:
    """Take all the space that is left, to the last byte."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    assert os.statvfs(place).f_bavail == 0
    return filler


def is_unsaved(update: Update) -> bool:
    match update:
        case Frame(event=Unsaved(reason=str())):
            return True
        case _:
            return False


async def test_a_turn_waits_for_space_and_goes_on_without_a_restart(
    small_disk: Path, tmp_path: Path
) -> None:  # G3-1
    async def take_all() -> str:
        """Take all the space."""
        fill(small_disk)
        return "a result " * 1000

    steps = ({"call": [{"tool": "take_all", "arguments": {}}]}, {"say": "fine"}, {"say": "fine"})
    async with (
        open_store(small_disk / "data") as store,
        open_runtime(storage=store, models=script(*steps), tools=[take_all]) as runtime,
    ):
        talk = await runtime.create_conversation(
            directory=str(tmp_path), settings=Settings(mode="full")
        )
        with trio.fail_after(30):
            async with talk.subscribe() as updates:
                await talk.send("go")
                update = await until(updates, is_unsaved)
                assert "space" in str(update)
                with pytest.raises(NotDurable, match="space"):
                    await talk.send("x" * 10_000)
                (call,) = await calls(talk)
                assert call.state == "running"  # as it is on disk
                (small_disk / "filler").unlink()
                await until(updates, is_turn("completed"))
        (call,) = await calls(talk)
        assert text_of(call.result).strip() == ("a result " * 1000).strip()
        assert (await talk.run("and now?")).text == "fine"
    async with open_store(small_disk / "data") as store:
        session = await (await store.open(talk.id)).open_session(talk.id)
        said = [
            text_of(i.content) for i in (await session.items()).items if isinstance(i, UserMessage)
        ]
        assert said == ["go", "and now?"]
        assert session.damage == ()
