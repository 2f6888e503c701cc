"""Files of this machine: races, full disks, crashes, and disks that do not answer."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from vaala_executors import FileDenied, FileFull, NotAFile, Place, Workspace
from vaala_executors.limits import FILE_THREADS_MAX
from vaala_executors.local.executor import LocalExecutor
from vaala_executors.local.files import read_file, remove
from vaala_executors.local.replace import replace_file
from vaala_executors.local.resolver import Resolver


def never_cancelled() -> None:
    pass


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "d" / "e").mkdir(parents=True)
    (tmp_path / "ws" / "d" / "e" / "f").write_text("inside")
    (tmp_path / "out" / "e").mkdir(parents=True)
    (tmp_path / "out" / "e" / "f").write_text("outside")
    return tmp_path / "ws"


def swapped(tree: Path, path: str) -> Place:
    """Resolve a path, then let a link out of the workspace take the place of a directory."""
    place = Resolver(str(tree), ()).resolve(path)
    assert place.root is not None
    (tree / "d").rename(tree / "was")
    (tree / "d").symlink_to(tree.parent / "out")
    return place


def test_directory_swapped_for_a_link_before_the_read(tree: Path) -> None:
    place = swapped(tree, "d/e/f")
    with pytest.raises(FileDenied, match="became a link"):
        read_file(place, 0, None, never_cancelled)


def test_directory_swapped_for_a_link_before_the_write(tree: Path) -> None:
    place = swapped(tree, "d/e/new/f")
    with pytest.raises(FileDenied, match="became a link"):
        replace_file(place, b"x", never_cancelled)
    assert os.listdir(tree.parent / "out" / "e") == ["f"]


def test_directory_swapped_for_a_link_before_the_removal(tree: Path) -> None:
    place = swapped(tree, "d/e/f")
    with pytest.raises(FileDenied, match="became a link"):
        remove(place)
    assert (tree.parent / "out" / "e" / "f").exists()


def test_file_swapped_for_a_link_or_a_fifo(tree: Path) -> None:
    place = Resolver(str(tree), ()).resolve("d/e/f")
    for make in (lambda path: path.symlink_to("/etc/passwd"), os.mkfifo):
        (tree / "d" / "e" / "f").unlink()
        make(tree / "d" / "e" / "f")
        with pytest.raises(NotAFile):
            read_file(place, 0, None, never_cancelled)
        with pytest.raises(NotAFile):
            replace_file(place, b"", never_cancelled)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let the system refuse to write more than ``size`` bytes to a file, like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_space_leaves_the_old_file_and_no_temporary(tree: Path) -> None:
    place = Resolver(str(tree), ()).resolve("d/e/f")  # E5-5
    with largest_file(1 << 20), pytest.raises(FileFull, match="f' was not written"):
        replace_file(place, bytes(3 << 20), never_cancelled)
    assert (tree / "d" / "e" / "f").read_text() == "inside"
    assert os.listdir(tree / "d" / "e") == ["f"]


def test_cancel_in_the_middle_leaves_the_old_file_and_no_temporary(tree: Path) -> None:
    place = Resolver(str(tree), ()).resolve("d/e/f")
    calls = 0

    def cancelled_later() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(place, bytes(8 << 20), cancelled_later)
    assert (tree / "d" / "e" / "f").read_text() == "inside"
    assert os.listdir(tree / "d" / "e") == ["f"]


def test_extended_attributes_are_kept(tree: Path) -> None:
    path = tree / "d" / "e" / "f"
    try:
        os.setxattr(path, "user.kept", b"yes")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    place = Resolver(str(tree), ()).resolve("d/e/f")
    replace_file(place, b"new", never_cancelled)
    assert os.getxattr(path, "user.kept") == b"yes"


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everything")
def test_write_protected_file(tree: Path) -> None:
    path = tree / "d" / "e" / "f"
    path.chmod(0o444)
    place = Resolver(str(tree), ()).resolve("d/e/f")
    with pytest.raises(FileDenied, match="write-protected"):
        replace_file(place, b"new", never_cancelled)


WRITER = """
import sys
from vaala_executors.local.replace import replace_file
from vaala_executors.local.resolver import Resolver
place = Resolver(sys.argv[1], ()).resolve("f")
print("ready", flush=True)
for letter in b"bcdefgh" * 1000:
    replace_file(place, bytes([letter]) * (20 << 20), lambda: None)
    print("wrote", flush=True)
"""


def test_kill_9_in_the_middle_of_a_write(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a" * 100)  # E5-3
    for writes in range(4):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(1 + writes):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        content = (tmp_path / "f").read_bytes()
        assert len(content) in (100, 20 << 20)
        assert content == content[:1] * len(content), "old or new, nothing between"


async def test_a_disk_that_does_not_answer_holds_up_neither_cancel_nor_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    hanging = threading.Semaphore(0)

    def hang(*_arguments: object) -> bytes:
        hanging.release()
        answered.wait()
        return b""

    def wait_until_all_hang() -> None:
        for _ in range(FILE_THREADS_MAX - 1):
            hanging.acquire()

    (tmp_path / "f").write_text("content")
    async with LocalExecutor() as executor, executor.open_workspace(str(tmp_path)) as workspace:
        with monkeypatch.context() as patched:
            patched.setattr("vaala_executors.local.files.read_file", hang)
            with trio.fail_after(10):
                async with trio.open_nursery() as nursery:
                    for _ in range(FILE_THREADS_MAX - 1):
                        nursery.start_soon(read, workspace)
                    await trio.to_thread.run_sync(wait_until_all_hang)
                    nursery.cancel_scope.cancel()
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
        with trio.fail_after(10):
            assert await workspace.read("f") == b"content"
        answered.set()


async def read(workspace: Workspace) -> None:
    await workspace.read("f")
