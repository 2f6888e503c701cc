"""Files that clients name: whatever is there, nothing hangs on it."""

from __future__ import annotations

import os
import threading
from io import FileIO
from pathlib import Path

import pytest
import trio

import vaala
from vaala.models.set import open_models
from vaala.named_file import NamedFile
from vaala_protocol.errors import BadRequest

REFUSAL = "{} cannot be read: is not a regular file"


class Noted(FileIO):
    """Says when it is read, and when it has been closed."""

    def __init__(self, descriptor: int) -> None:
        self.in_use = threading.Event()
        self.gone = threading.Event()
        super().__init__(descriptor)

    def read(self, size: int | None = -1) -> bytes:
        self.in_use.set()
        return super().read(size)

    def close(self) -> None:
        super().close()
        self.gone.set()


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A pipe that nobody writes to: whoever opens it waits for ever."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
async def test_only_regular_files_are_imported(fifo: Path, kind: str) -> None:
    path = {"fifo": fifo, "directory": fifo.parent, "device": Path("/dev/zero")}[kind]
    async with vaala.open_runtime() as runtime:
        with trio.fail_after(10), pytest.raises(BadRequest, match=REFUSAL.format(path)):
            await runtime.import_conversation(str(path))


async def test_a_script_is_a_regular_file(fifo: Path) -> None:
    async with open_models((), {}) as models:
        with trio.fail_after(10), pytest.raises(BadRequest, match="is not a regular file"):
            await models.resolve(f"scripted:{fifo}")
        with pytest.raises(BadRequest, match=r"cannot be read: .*embedded null"):
            await models.resolve("scripted:/x\0y")


async def test_a_turn_with_a_pipe_as_its_script_fails(fifo: Path, tmp_path: Path) -> None:
    async with open_models((), {}) as models, vaala.open_runtime(models=models) as runtime:
        talk = await runtime.create_conversation(directory=str(tmp_path))
        with trio.fail_after(10):
            result = await talk.run("go", settings=vaala.Settings(model=f"scripted:{fifo}"))
        assert result.turn.state == "failed"
        assert "is not a regular file" in result.turn.message


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    with NamedFile(trio.CapacityLimiter(1)) as file:
        await file.open(path)
        assert [await file.read(3) for _ in range(3)] == [b"123", b"45", b""]


async def test_a_read_that_hangs_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that is dead: the cancel is at once, and the file is closed at last."""
    reader, writer = os.pipe()
    hanging = Noted(reader)
    monkeypatch.setattr("vaala.named_file.open_regular", lambda path: hanging)
    path = str(tmp_path / "archive")
    async with vaala.open_runtime() as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.import_conversation, path)
        assert await trio.to_thread.run_sync(hanging.in_use.wait, 10)
        nursery.cancel_scope.cancel()
    assert not hanging.closed, "a thread is still in it"
    os.close(writer)
    assert await trio.to_thread.run_sync(hanging.gone.wait, 10)
