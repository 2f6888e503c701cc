"""Blobs on a device that is full or fails, across crashes, and beside the streams of their path."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from vaala_storage import AlreadyExists, NotFound, StorageError, StorageFailed, StorageFull
from vaala_storage.faults import Fault, FaultyFiles, MemoryFiles, PowerCut
from vaala_storage.file import FileBlobs, open_file_blobs, open_file_log


@pytest.fixture
def disk() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def files(disk: MemoryFiles) -> FaultyFiles:
    return FaultyFiles(disk)


@pytest.fixture
async def blobs(files: FaultyFiles) -> AsyncGenerator[FileBlobs]:
    async with open_file_blobs("/data", files=files) as opened:
        yield opened


async def keys(blobs: FileBlobs, path: str = "p") -> list[str]:
    return [key async for key in blobs.keys(path)]


@pytest.mark.parametrize("fault", [Fault.FULL, Fault.SHORT, Fault.QUOTA])
async def test_a_full_disk_leaves_nothing(
    blobs: FileBlobs, files: FaultyFiles, disk: MemoryFiles, fault: Fault
) -> None:
    files.plan("write", fault)
    with pytest.raises(StorageFull, match="p/k"):
        await blobs.put("p", "k", b"x" * 100)
    assert await keys(blobs) == []
    assert disk.list_directory("/data/.blobs") == []
    assert disk.open_count == 0
    await blobs.put("p", "k", b"y")
    assert await blobs.get("p", "k") == b"y"


async def test_nothing_is_committed_behind_a_write_that_failed(
    blobs: FileBlobs, files: FaultyFiles
) -> None:
    async with blobs.writer("p", "k") as writer:
        await writer.write(b"one")
        files.plan("write", Fault.SHORT)
        with pytest.raises(StorageFull):
            await writer.write(b"two")
        with pytest.raises(ValueError, match="p/k: the blob was given up"):
            await writer.write(b"three")
        with pytest.raises(ValueError, match="p/k: the blob was given up"):
            await writer.commit()
    assert await keys(blobs) == []


@pytest.mark.parametrize("call", ["sync_data", "link", "open_new"])
async def test_an_error_before_the_name_leaves_nothing(
    blobs: FileBlobs, files: FaultyFiles, disk: MemoryFiles, call: str
) -> None:
    files.plan(call, Fault.IO)  # G3-2
    with pytest.raises(StorageFailed, match="p/k: Input/output error"):
        await blobs.put("p", "k", b"x")
    assert await keys(blobs) == []
    assert disk.list_directory("/data/.blobs") == []
    assert disk.open_count == 0


async def test_a_silent_device_keeps_its_descriptor(
    files: FaultyFiles, mock_clock: MockClock
) -> None:
    """The call that hangs may still use it; nothing else may get the same number."""
    mock_clock.autojump_threshold = 0
    async with open_file_blobs("/data", files=files) as blobs:
        files.plan("write", Fault.SILENT)
        with pytest.raises(StorageFailed, match="not answered for 60 s"):
            await blobs.put("p", "k", b"x")
        assert await keys(blobs) == []
        await blobs.put("p", "k", b"y")


async def test_a_file_system_without_hard_links(
    blobs: FileBlobs, files: FaultyFiles, disk: MemoryFiles
) -> None:
    files.plan("link", Fault.NO_LINKS)
    await blobs.put("old", "k", b"1")
    files.plan("link", Fault.NO_LINKS)
    with pytest.raises(AlreadyExists):
        await blobs.put("old", "k", b"2")
    for _ in range(2):  # of take, and of placing the copy
        files.plan("link", Fault.NO_LINKS)
    await blobs.link("old", "new")
    await blobs.delete_path("old")
    assert await blobs.get("new", "k") == b"1"
    assert disk.list_directory("/data/.blobs") == []


async def test_opening_sweeps_what_a_crash_left(tmp_path: Path) -> None:
    left = tmp_path / ".blobs" / "left"
    left.parent.mkdir()
    left.write_bytes(b"half")
    async with open_file_blobs(tmp_path, read_only=True):
        assert left.exists()
    async with open_file_blobs(tmp_path) as blobs:
        assert not left.exists()
        assert await keys(blobs) == []


async def test_blobs_stored_before_their_path_is_made(tmp_path: Path) -> None:
    """A first message names blobs that must be durable before it."""
    async with open_file_log(tmp_path) as log, open_file_blobs(tmp_path) as blobs:
        await blobs.put("p", "k", b"1")
        with pytest.raises(NotFound):
            await log.append("p", "s", [{"n": 1}], expected=0)
        assert (await log.paths()).paths == ()
        await log.create("p", {"s": [{"blob": "k"}]})
        assert await blobs.get("p", "k") == b"1"
        await blobs.put("p", "k2", b"2")
        assert await keys(blobs) == ["k", "k2"]
        assert (await log.paths()).paths == ("p",)
        await log.delete_path("p")
        assert await keys(blobs) == []


async def test_a_path_that_cannot_be_made_keeps_its_blobs(
    blobs: FileBlobs, files: FaultyFiles
) -> None:
    async with open_file_log("/data", files=files) as log:
        await blobs.put("p", "k", b"1")
        files.plan("rename", Fault.IO, skip=1)  # the first one moves the blobs
        with pytest.raises(StorageFailed):
            await log.create("p", {"s": []})
        assert await blobs.get("p", "k") == b"1"
        await log.create("p", {"s": []})
        assert await blobs.get("p", "k") == b"1"


async def test_other_things_in_the_way_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notes.txt").write_text("mine")
    async with open_file_log(tmp_path) as log:
        with pytest.raises(AlreadyExists, match=r"notes\.txt"):
            await log.create("p", {"s": []})
    assert (tmp_path / "p" / "notes.txt").read_text() == "mine"


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), rate=st.sampled_from((0.0, 0.1)))
def test_blobs_that_were_acknowledged_survive(seed: int, rate: float) -> None:
    random = Random(seed)
    files = FaultyFiles(MemoryFiles(), random=random)
    stored: dict[tuple[str, str], bytes] = {}
    begun: dict[tuple[str, str], bytes] = {}

    async def life() -> None:
        files.rate = 0
        async with open_file_blobs("/data", files=files) as blobs:
            for path in ("p", "q/r"):
                for key in await keys(blobs, path):
                    assert await blobs.get(path, key) == begun[path, key]
            for (path, key), data in stored.items():
                assert await blobs.get(path, key) == data
            files.rate = rate
            files.cut_power(random.randrange(1, 40))
            for number in range(len(begun), len(begun) + 30):
                at = random.choice(("p", "q/r")), f"k{number}"
                begun[at] = random.randbytes(random.choice((0, 10, 3000)))
                try:
                    await blobs.put(*at, begun[at])
                except StorageError:
                    continue
                stored[at] = begun[at]

    for _ in range(3):
        try:
            trio.run(life)
        except PowerCut:
            files.restart(random)
