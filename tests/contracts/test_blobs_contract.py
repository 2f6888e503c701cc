"""What every `BlobStorage` does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from tests.contracts.implementations import BLOBS, Implementation
from vaala_storage import AlreadyExists, BlobStorage, NotFound

LARGE = bytes(range(256)) * 40_000


@pytest.fixture(params=BLOBS, ids=str)
def implementation(request: pytest.FixtureRequest) -> Implementation[BlobStorage]:
    found: Implementation[BlobStorage] = request.param
    return found


@pytest.fixture
async def blobs(
    implementation: Implementation[BlobStorage], tmp_path: Path
) -> AsyncGenerator[BlobStorage]:
    async with implementation.open(tmp_path / "store") as opened:
        yield opened


async def keys(blobs: BlobStorage, path: str) -> list[str]:
    return [key async for key in blobs.keys(path)]


@pytest.mark.parametrize("data", [b"", b"a", b"\0\xff\n" * 7, LARGE], ids=len)
async def test_put_and_get(blobs: BlobStorage, data: bytes) -> None:
    await blobs.put("p/q", "k.png", data)
    assert await blobs.get("p/q", "k.png") == data
    assert await blobs.size("p/q", "k.png") == len(data)


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 0), (0, 3), (2, 4), (5, None), (8, 10), (10, 1), (99, None)]
)
async def test_ranges(blobs: BlobStorage, offset: int, length: int | None) -> None:
    data = b"0123456789"
    await blobs.put("p", "k", data)
    wanted = data[offset:] if length is None else data[offset : offset + length]
    assert await blobs.get("p", "k", offset=offset, length=length) == wanted


async def test_a_range_cannot_be_negative(blobs: BlobStorage) -> None:
    await blobs.put("p", "k", b"0123")
    with pytest.raises(ValueError, match="offset"):
        await blobs.get("p", "k", offset=-1)
    with pytest.raises(ValueError, match="length"):
        await blobs.get("p", "k", length=-1)


async def test_what_is_not_there(blobs: BlobStorage) -> None:
    await blobs.put("p", "k", b"")
    for path, key in (("p", "other"), ("q", "k")):
        with pytest.raises(NotFound):
            await blobs.get(path, key)
        with pytest.raises(NotFound):
            await blobs.size(path, key)
    assert await keys(blobs, "q") == []


async def test_a_blob_never_changes(blobs: BlobStorage) -> None:
    await blobs.put("p", "k", b"first")
    with pytest.raises(AlreadyExists, match="p/k"):
        await blobs.put("p", "k", b"second")
    async with blobs.writer("p", "k") as writer:
        await writer.write(b"third")
        with pytest.raises(AlreadyExists):
            await writer.commit()
        with pytest.raises(ValueError, match="given up"):
            await writer.write(b"more")
        with pytest.raises(ValueError, match="given up"):
            await writer.commit()
    assert await blobs.get("p", "k") == b"first"
    assert await keys(blobs, "p") == ["k"]


async def test_a_writer_gathers_pieces(blobs: BlobStorage) -> None:
    async with blobs.writer("p", "k") as writer:
        for piece in (b"one ", b"", b"two ", LARGE):
            await writer.write(piece)
        assert await keys(blobs, "p") == []
        await writer.commit()
        with pytest.raises(ValueError, match="committed"):
            await writer.write(b"late")
        with pytest.raises(ValueError, match="committed"):
            await writer.commit()
    assert await blobs.get("p", "k") == b"one two " + LARGE


async def test_a_writer_without_commit_leaves_nothing(blobs: BlobStorage) -> None:
    async with blobs.writer("p", "k") as writer:
        await writer.write(b"half")
    with pytest.raises(NotFound):
        await write_half_of_a_copy(blobs)
    with trio.CancelScope() as scope:
        async with blobs.writer("p", "k") as writer:
            await writer.write(b"half")
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert await keys(blobs, "p") == []
    await blobs.put("p", "k", b"whole")


async def write_half_of_a_copy(blobs: BlobStorage) -> None:
    async with blobs.writer("p", "k") as writer:
        await writer.write(b"half")
        await writer.write(await blobs.get("nowhere", "k"))


async def test_a_writer_may_commit_an_empty_blob(blobs: BlobStorage) -> None:
    async with blobs.writer("p", "k") as writer:
        await writer.commit()
    assert await blobs.get("p", "k") == b""


async def test_keys_are_sorted(blobs: BlobStorage) -> None:
    for key in ("b", "a.txt", "B", "a"):
        await blobs.put("p", key, b"x")
    assert await keys(blobs, "p") == ["B", "a", "a.txt", "b"]


async def test_linked_blobs_live_on_their_own(blobs: BlobStorage) -> None:
    await blobs.put("old", "a", b"1")
    await blobs.put("old", "b", b"2")
    await blobs.put("new", "b", b"2")
    await blobs.link("old", "new")
    await blobs.link("old", "new")
    assert await keys(blobs, "new") == ["a", "b"]
    await blobs.delete_path("old")
    assert await keys(blobs, "old") == []
    assert await blobs.get("new", "a") == b"1"
    await blobs.link("nothing-there", "new")
    assert await keys(blobs, "new") == ["a", "b"]


async def test_delete_path(blobs: BlobStorage) -> None:
    await blobs.put("p", "k", b"1")
    await blobs.put("q", "k", b"2")
    await blobs.delete_path("p")
    await blobs.delete_path("p")
    assert await keys(blobs, "p") == []
    assert await blobs.get("q", "k") == b"2"
    await blobs.put("p", "k", b"3")
    assert await blobs.get("p", "k") == b"3"


@pytest.mark.parametrize("name", ["", ".x", "..", "a/b", "a b", "x" * 201])
async def test_names_that_are_refused(blobs: BlobStorage, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        await blobs.put("p", name, b"")
    with pytest.raises(ValueError, match="name"):
        await blobs.get("p", name)
    with pytest.raises(ValueError, match="name"):
        await blobs.put(f"p/{name}/" if name == "a/b" else name, "k", b"")


async def test_reopening(implementation: Implementation[BlobStorage], tmp_path: Path) -> None:
    async with implementation.open(tmp_path) as blobs:
        await blobs.put("p", "k", b"kept")
    async with implementation.open(tmp_path) as blobs:
        assert await keys(blobs, "p") == (["k"] if implementation.lasting else [])
