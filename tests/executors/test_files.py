"""Files on any executor: what is inside, what is read, how a write replaces a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from vaala_executors import (
    DirEntry,
    Executor,
    FileDenied,
    FileExists,
    FileFailed,
    FileMissing,
    NotADirectory,
    NotAFile,
    OutsideWorkspace,
    PathMoved,
    SearchQuery,
    Workspace,
)
from vaala_executors.errors import FileProblem, FileTooLarge


@pytest.fixture
def outside(tmp_path: Path, directory: Path) -> Path:
    """A directory beside the workspace whose name begins like the workspace's."""
    path = directory.parent / (directory.name + "-evil")
    path.mkdir()
    (path / "secret").write_text("secret")
    return path


@pytest.fixture
def fill(directory: Path) -> Path:
    """The workspace's directory with links that lead out of it and in circles."""
    (directory / "a").mkdir()
    (directory / "a" / "file").write_text("content")
    os.symlink("a/file", directory / "link")
    os.symlink("a", directory / "linked")
    os.symlink("nothing", directory / "dangling")
    os.symlink("circle", directory / "circle")
    os.symlink("/etc", directory / "out")
    os.mkfifo(directory / "fifo")
    return directory


async def test_write_and_read(workspace: Workspace, directory: Path) -> None:
    data = bytes(range(256)) * 10
    written = await workspace.write("new/数据/f 'x'\n", data)
    assert await workspace.read("new/数据/f 'x'\n") == data
    assert await workspace.read(str(directory / "new/数据/f 'x'\n")) == data
    assert (written.kind, written.size) == ("file", 2560)
    assert (await workspace.find("new/数据/f 'x'\n")).stat == written


async def test_reads_of_parts(workspace: Workspace) -> None:
    await workspace.write("f", b"0123456789")
    assert await workspace.read("f", offset=3, length=4) == b"3456"
    assert await workspace.read("f", offset=8, length=10) == b"89"
    assert await workspace.read("f", offset=10) == b""  # E6-4
    assert await workspace.read("f", offset=1 << 80) == b""
    assert await workspace.read("f", length=0) == b""
    await workspace.write("empty", b"")
    assert await workspace.read("empty") == b""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("out/passwd", OutsideWorkspace),  # E1-1
        ("../数据-evil/secret", OutsideWorkspace),  # E1-2
        ("../../../etc/passwd", OutsideWorkspace),  # E1-3
        ("/etc/passwd", OutsideWorkspace),
        ("./a/../../x", OutsideWorkspace),
        ("~root/x", FileMissing),
        ("/proc/self/root/etc/hosts", OutsideWorkspace),  # E1-5
        ("/proc/self/fd/0", OutsideWorkspace),
        ("/dev/stdin", OutsideWorkspace),
        ("fifo", NotAFile),
        ("a", NotAFile),  # E6-4
        (".", NotAFile),
        ("missing", FileMissing),
        ("dangling", FileMissing),
        ("circle", FileProblem),
        ("circle/x", FileProblem),
        ("a/file/x", NotADirectory),
        ("nul\0", FileFailed),
        ("\ud800", FileFailed),
        ("x" * 300, FileFailed),
    ],
)
async def test_paths_that_are_not_read(
    workspace: Workspace, fill: Path, outside: Path, path: str, kind: type[FileProblem]
) -> None:
    with trio.fail_after(10), pytest.raises(kind) as caught:
        await workspace.read(path)
    assert repr(path) in str(caught.value)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/dev/tty", "fifo"])  # E1-5
async def test_devices_are_not_read_even_when_all_is_allowed(
    workspace: Workspace, fill: Path, path: str
) -> None:
    with trio.fail_after(10), pytest.raises((NotAFile, FileMissing)):
        await workspace.read(await workspace.find(path))


async def test_a_place_outside_is_worked_on(
    workspace: Workspace, fill: Path, outside: Path
) -> None:
    secret = await workspace.find(str(outside / "secret"))
    assert await workspace.read(secret) == b"secret"
    await workspace.write(await workspace.find(str(outside / "new" / "f")), b"x")
    cpus = await workspace.find("/proc/cpuinfo")
    assert b"processor" in await workspace.read(cpus), "its size is 0"
    assert (await workspace.read_whole(cpus, 1 << 20)).data
    await workspace.rename(secret, await workspace.find(str(outside / "moved")))
    await workspace.remove(await workspace.find(str(outside / "moved")))
    assert os.listdir(outside) == ["new"]


async def test_a_place_that_leads_elsewhere_by_now(
    workspace: Workspace, fill: Path, outside: Path
) -> None:
    link, file = await workspace.find("link"), await workspace.find("a/file")
    far = await workspace.find(str(outside / "secret"))
    os.unlink(fill / "link")
    os.symlink(outside / "secret", fill / "link")
    os.rename(fill / "a", fill / "b")
    os.symlink(outside, fill / "a")
    os.rename(outside / "secret", outside / "kept")
    os.symlink("kept", outside / "secret")
    for place in (link, file, far):  # E1-4
        for use in (
            workspace.read(place),
            workspace.read_whole(place, 100),
            workspace.write(place, b"x"),
            workspace.list(place),
            workspace.search(SearchQuery("x", path=place)),
        ):
            with pytest.raises(PathMoved, match="another place"):
                await use
    assert read_text(outside / "kept") == "secret"


async def test_removal_of_a_place_spares_the_link_that_leads_there(
    workspace: Workspace, fill: Path
) -> None:
    with pytest.raises(PathMoved):
        await workspace.remove(await workspace.find("link"))
    assert os.readlink(fill / "link") == "a/file"


async def test_read_whole(workspace: Workspace, fill: Path) -> None:
    found = await workspace.read_whole("link", 7)
    assert (found.data, found.stat) == (b"content", (await workspace.find("a/file")).stat)
    large = await workspace.read_whole("link", 6)
    assert (large.data, large.stat) == (None, found.stat)
    assert (await workspace.read_whole("/proc/self/root" + str(fill / "a/file"), 7)) == found


@pytest.mark.parametrize("path", ["out/x.txt", "../数据-evil/x", "/etc/x", "out/new/x"])
async def test_nothing_is_created_outside(
    workspace: Workspace, fill: Path, outside: Path, path: str
) -> None:
    with pytest.raises(OutsideWorkspace):  # E1-1
        await workspace.write(path, b"x")
    with pytest.raises(OutsideWorkspace):
        await workspace.rename("a/file", path)
    with pytest.raises(OutsideWorkspace):
        await workspace.remove(path)
    assert not any(map(os.path.exists, ("/etc/x.txt", "/etc/x", "/etc/new")))
    assert os.listdir(outside) == ["secret"]


async def test_find(workspace: Workspace, fill: Path, outside: Path) -> None:
    real = str(fill)  # tmp_path is a real path

    async def found(path: str) -> tuple[str, str, bool]:
        place = await workspace.find(path)
        return place.real_path, place.name, place.root == real

    assert await found("linked/../new/x") == (f"{real}/new/x", "new/x", True)
    assert await found("out/x") == ("/etc/x", "/etc/x", False)
    assert await found("../数据-evil") == (f"{real}-evil", f"{real}-evil", False)
    assert await found("") == (real, ".", True)


async def test_what_is_found(workspace: Workspace, fill: Path) -> None:
    async def kind(path: str) -> str | None:
        stat = (await workspace.find(path)).stat
        return None if stat is None else stat.kind

    assert [await kind(path) for path in ("link", "linked/", "fifo")] == [
        "file",
        "directory",
        "other",
    ]
    assert [await kind(path) for path in ("dangling", "missing", "a/file/x")] == [None] * 3
    assert await kind("/") == "directory"


async def test_root_that_is_a_link(executor: Executor, fill: Path, tmp_path: Path) -> None:
    os.symlink(fill, tmp_path / "root")  # E1-4
    async with executor.open_workspace(str(tmp_path / "root")) as workspace:
        assert workspace.directory == str(tmp_path / "root")
        assert await workspace.read("a/file") == b"content"
        assert await workspace.read(str(fill / "a" / "file")) == b"content"
        assert (await workspace.find(str(fill / "a" / "file"))).name == "a/file"
        await workspace.write("new", b"x")
        with pytest.raises(OutsideWorkspace):
            await workspace.read("../other")


async def test_additional_roots(executor: Executor, directory: Path, outside: Path) -> None:
    async with executor.open_workspace(str(directory), [str(outside)]) as workspace:
        assert await workspace.read(str(outside / "secret")) == b"secret"
        await workspace.rename(str(outside / "secret"), "moved")
        with pytest.raises(OutsideWorkspace):
            await workspace.list(str(directory.parent))


async def test_hard_link_to_a_file_outside(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    os.link(outside / "secret", directory / "hard")  # E1-5
    assert await workspace.read("hard") == b"secret"
    await workspace.write("hard", b"mine")
    assert read_text(outside / "secret") == "secret"


def read_text(path: Path) -> str:
    return path.read_text()


async def test_mode_and_link_are_kept(workspace: Workspace, fill: Path) -> None:
    os.chmod(fill / "a" / "file", 0o755)  # E5-1
    written = await workspace.write("link", b"changed")
    assert written.mode == 0o755
    assert os.readlink(fill / "link") == "a/file"
    assert await workspace.read("a/file") == b"changed"
    await workspace.write("dangling", b"made")
    assert os.readlink(fill / "dangling") == "nothing"
    assert await workspace.read("nothing") == b"made"


async def test_mode_of_a_new_file_follows_the_umask(workspace: Workspace) -> None:
    before = os.umask(0o027)
    try:
        assert (await workspace.write("new", b"")).mode == 0o640
    finally:
        os.umask(before)


async def test_owner_is_kept(workspace: Workspace, directory: Path) -> None:
    await workspace.write("f", b"1")
    owner = os.getuid()
    group = 12345 if owner == 0 else os.getgid()
    os.chown(directory / "f", owner, group)
    await workspace.write("f", b"2")
    assert (os.stat(directory / "f").st_uid, os.stat(directory / "f").st_gid) == (owner, group)


@pytest.mark.parametrize("path", ["a", "fifo", "."])
async def test_only_files_are_written(workspace: Workspace, fill: Path, path: str) -> None:
    with pytest.raises(NotAFile):
        await workspace.write(path, b"x")
    assert not [name for name in os.listdir(fill) if "tmp" in name]


async def test_list(workspace: Workspace, fill: Path) -> None:
    assert list(await workspace.list(".")) == [
        DirEntry("a", "directory", 0),
        DirEntry("circle", "link", 0),
        DirEntry("dangling", "link", 0),
        DirEntry("fifo", "other", 0),
        DirEntry("link", "link", 0),
        DirEntry("linked", "link", 0),
        DirEntry("out", "link", 0),
    ]
    assert list(await workspace.list("linked")) == [DirEntry("file", "file", 7)]
    with pytest.raises(NotADirectory):
        await workspace.list("a/file")
    with pytest.raises(FileMissing):
        await workspace.list("missing")
    with pytest.raises(OutsideWorkspace):
        await workspace.list("out")


async def test_remove(workspace: Workspace, fill: Path) -> None:
    for name in ("link", "dangling", "circle", "out", "linked/"):
        await workspace.remove(name)
    assert await workspace.read("a/file") == b"content", "only the links are gone"
    with pytest.raises(FileFailed, match="not empty"):
        await workspace.remove("a")
    await workspace.remove("a/file")
    await workspace.remove("a")
    with pytest.raises(FileMissing):
        await workspace.remove("a")
    with pytest.raises(FileDenied, match="root of the workspace"):
        await workspace.remove(".")


async def test_rename(workspace: Workspace, fill: Path) -> None:
    await workspace.rename("a/file", "b/c/file")
    assert await workspace.read("b/c/file") == b"content"
    await workspace.rename("link", "moved")
    assert os.readlink(fill / "moved") == "a/file"
    await workspace.rename("b", "d")
    await workspace.write("other", b"other")
    for target in ("d/c/file", "d", "dangling", "."):
        with pytest.raises(FileExists):
            await workspace.rename("other", target)
    with pytest.raises(FileMissing, match="missing"):
        await workspace.rename("missing", "x")
    with pytest.raises(NotADirectory):
        await workspace.rename("d", "other/x")
    assert await workspace.read("other") == b"other"


async def test_names_that_are_no_utf8(workspace: Workspace, directory: Path) -> None:
    name = os.fsdecode(b"bad-\xff")  # D8-1
    await workspace.write(name, b"x")
    assert os.listdir(os.fsencode(directory)) == [b"bad-\xff"]
    assert [entry.name for entry in await workspace.list(".")] == [name]
    assert await workspace.read(name) == b"x"


async def test_workspace_that_vanished(workspace: Workspace, directory: Path) -> None:
    os.rmdir(directory)  # D6-1
    for attempt in (workspace.read("f"), workspace.write("f", b""), workspace.list(".")):
        with pytest.raises(FileMissing, match="does not exist"):
            await attempt
    assert directory.name not in os.listdir(directory.parent)
    os.mkdir(directory)
    await workspace.write("f", b"back")


async def test_a_file_over_the_limit_is_read_in_parts(
    workspace: Workspace, directory: Path
) -> None:
    with open(directory / "big", "wb") as file:  # noqa: ASYNC230 - it is sparse, this is instant
        file.truncate((64 << 20) + 1)
    with pytest.raises(FileTooLarge, match="by offset and length"):
        await workspace.read("big")
    assert await workspace.read("big", offset=(64 << 20) - 1) == b"\0\0"


async def test_cancelled_write_leaves_the_file_as_it_was(workspace: Workspace) -> None:
    await workspace.write("f", b"old")
    with trio.CancelScope() as scope:
        scope.cancel()
        await workspace.write("f", b"new")
    assert scope.cancelled_caught
    assert await workspace.read("f") == b"old"
