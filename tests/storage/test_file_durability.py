"""What is on the device when a call returns, seen through the record of calls."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from random import Random

import pytest

from tests.storage.file_helpers import queued_behind_a_sync
from vaala_storage import StorageFailed
from vaala_storage.faults import FaultyFiles, MemoryFiles
from vaala_storage.file import open_file_blobs, open_file_log
from vaala_storage.file.lines import encode_body, make_line
from vaala_storage.file.system import SYSTEM_FILES, Files


@pytest.fixture(params=["memory", "system"])
def files(request: pytest.FixtureRequest) -> FaultyFiles:
    inner: Files = MemoryFiles() if request.param == "memory" else SYSTEM_FILES
    return FaultyFiles(inner)


def calls(files: FaultyFiles, *names: str) -> list[tuple[str, str]]:
    """Return the calls so far that change something, and forget them."""
    quiet = {"state", "read", "list_directory", "close", "open_read"} - set(names)
    found = [(c.name, os.path.basename(c.path)) for c in files.calls if c.name not in quiet]
    files.calls.clear()
    return found


async def test_append_returns_after_the_sync(tmp_path: Path, files: FaultyFiles) -> None:
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        await log.append("p", "s", [{"n": 1}], expected=0)
        calls(files)
        await log.append("p", "s", [{"n": 2}], expected=1)
        assert calls(files) == [("write", "s.jsonl"), ("sync_data", "s.jsonl")]


async def test_what_is_found_is_made_durable_before_it_is_built_on(
    tmp_path: Path, files: FaultyFiles
) -> None:
    """The process that wrote it may have been killed between its write and its sync."""
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": [{"n": 1}]})
        calls(files)
        await log.append("p", "s", [{"n": 2}], expected=1)
        assert calls(files) == [
            ("open_append", "s.jsonl"),
            ("sync_data", "s.jsonl"),
            ("sync_directory", "p"),
            ("sync_directory", tmp_path.name),
            ("open_append", "s.jsonl"),
            ("write", "s.jsonl"),
            ("sync_data", "s.jsonl"),
        ]


async def test_make_durable_syncs_every_stream_and_every_name(
    tmp_path: Path, files: FaultyFiles
) -> None:
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"a": [{"n": 1}], "b": []})
        calls(files)
        await log.make_durable("p")
        assert calls(files) == [
            ("sync_data", "a.jsonl"),
            ("sync_data", "b.jsonl"),
            ("sync_directory", "p"),
            ("sync_directory", tmp_path.name),
        ]


@pytest.mark.parametrize("seed", range(8))
async def test_make_durable_keeps_what_a_killed_process_wrote(seed: int) -> None:
    memory = MemoryFiles()
    files = FaultyFiles(memory)
    async with open_file_log("/data", files=files) as log:
        await log.create("p", {"s": [{"n": 1}]})
    handle = memory.open_append("/data/p/s.jsonl", create=False)
    memory.write(handle, make_line(2, 1, encode_body([{"n": 2}], "p/s")) + b"torn")
    memory.close(handle)
    new = memory.open_append("/data/p/new.jsonl", create=True)
    memory.write(new, make_line(1, 1, encode_body([{"n": 1}], "p/new")))
    memory.close(new)
    async with open_file_log("/data", files=files) as log:
        await log.make_durable("p")
    files.restart(Random(seed))
    async with open_file_log("/data", files=files) as log:
        assert await log.last("p", "s") == 2
        assert await log.last("p", "new") == 1
        # What is torn is left to the first append, which keeps it aside.
        assert memory.read(memory.open_read("/data/p/s.jsonl"), 0, 1 << 20).endswith(b"torn")


class _Removing(FaultyFiles):
    """Somebody else removes each file just before it is opened, and what is empty then."""

    def open_read(self, path: str) -> int:
        self.remove(path)
        with contextlib.suppress(OSError):
            self.remove_directory(os.path.dirname(path))
        return super().open_read(path)


class _Closed(FaultyFiles):
    """One file is another user's."""

    def open_read(self, path: str) -> int:
        if path.endswith("/closed.jsonl"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return super().open_read(path)


@pytest.mark.parametrize("streams", [("s",), ("s", "t")])
async def test_what_is_removed_meanwhile_need_not_be_durable(
    tmp_path: Path, streams: tuple[str, ...]
) -> None:
    async with open_file_log(tmp_path, files=_Removing(SYSTEM_FILES)) as log:
        await log.create("p", {name: [] for name in streams})
        await log.make_durable("p")
        assert (await log.paths()).paths == ()


async def test_a_stream_that_may_not_be_read_hinders_no_other() -> None:
    files = _Closed(MemoryFiles())
    async with open_file_log("/data", files=files) as log:
        await log.create("p", {"a": [{"n": 1}], "closed": []})
        files.calls.clear()
        await log.make_durable("p")
        assert calls(files)[0] == ("sync_data", "a.jsonl")


async def test_a_new_file_is_durable_in_its_directory(tmp_path: Path, files: FaultyFiles) -> None:
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        calls(files)
        await log.append("p", "new", [{"n": 1}], expected=0)
        assert calls(files) == [
            ("open_append", "new.jsonl"),  # looks for it
            ("sync_directory", "p"),
            ("sync_directory", tmp_path.name),
            ("open_append", "new.jsonl"),  # makes it
            ("write", "new.jsonl"),
            ("sync_data", "new.jsonl"),
            ("sync_directory", "p"),
        ]


async def test_create_syncs_all_before_and_after_the_rename(
    tmp_path: Path, files: FaultyFiles
) -> None:
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("warm-up", {"s": []})
        calls(files)
        await log.create("x/p", {"a": [{"n": 1}], "b": []})
        assert [name if path != "b.jsonl" else f"{name} b" for name, path in calls(files)] == [
            "make_directory",  # x
            "sync_directory",  # the root, for x
            "make_directory",  # the hidden place, which is there already
            "make_directory",
            "open_new",
            "write",
            "sync_data",
            "open_new b",
            "sync_data b",
            "sync_directory",  # the hidden one, for its files
            "rename",
            "sync_directory",  # x, for p
            "sync_directory",  # the root
        ]


async def test_what_waits_becomes_one_write(tmp_path: Path) -> None:
    """Eight appends at once: the first goes alone, the seven behind it share a line."""
    files = FaultyFiles(SYSTEM_FILES)
    async with open_file_log(tmp_path, files=files) as log:
        await log.create("p", {"s": []})
        await log.append("p", "s", [{"n": 1}], expected=0)
        calls(files)
        batches = [[{"n": n}] for n in range(2, 10)]
        async with queued_behind_a_sync(log, files, batches, expected=1) as outcomes:
            assert calls(files) == [("write", "s.jsonl"), ("sync_data", "s.jsonl")]
            assert outcomes == {}
        assert calls(files) == [("write", "s.jsonl"), ("sync_data", "s.jsonl")]
        assert outcomes == {n - 1: n for n in range(2, 10)}
    lines = (tmp_path / "p" / "s.jsonl").read_bytes().splitlines()
    assert [line[:14] for line in lines] == [
        b'{"seq":1,"n":1',
        b'{"seq":2,"n":1',
        b'{"seq":3,"n":7',
    ]


async def test_blobs_are_synced_before_they_get_their_name(
    tmp_path: Path, files: FaultyFiles
) -> None:
    async with open_file_blobs(tmp_path, files=files) as blobs:
        await blobs.put("p", "first", b"1")
        calls(files)
        await blobs.put("p", "k", b"2")
        names = [name for name, _ in calls(files) if name != "make_directory"]
        assert (
            names == ["open_new", "write", "sync_data", "link", "remove"] + ["sync_directory"] * 3
        )


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o377])
async def test_modes_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    root = tmp_path / "root"
    before = os.umask(umask)
    try:
        async with open_file_log(root) as log, open_file_blobs(root) as blobs:
            await log.create("x/p", {"s": []})
            await log.append("x/p", "t", [{"n": 1}], expected=0)
            await blobs.put("x/p", "k", b"1")
    finally:
        os.umask(before)
    found = {
        str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode)
        for path in [root, *root.rglob("*")]
    }
    for name in (".", "x", "x/p", "x/p/blobs"):
        assert found[name] == 0o700, name
    for name in ("x/p/s.jsonl", "x/p/t.jsonl", "x/p/blobs/k"):
        assert found[name] == 0o600, name


async def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    async with open_file_log(tmp_path / "root") as log:
        await log.create("p", {"s": []})
        (tmp_path / "root" / "p" / "t.jsonl").symlink_to(outside)
        with pytest.raises(StorageFailed, match=r"p/t: .*symbolic"):
            await log.append("p", "t", [{"n": 1}], expected=0)
    assert outside.read_bytes() == b""
