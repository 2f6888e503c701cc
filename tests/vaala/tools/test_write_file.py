"""``write_file``, and the guard against changing what was not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.vaala.tools.calling import Caller
from vaala.tools import limits
from vaala.tools.base import ReadRecord, ToolFailure
from vaala.tools.locks import PathLocks
from vaala_protocol.calls import FileChange, FileChangeDetails


async def test_a_new_file(caller: Caller, directory: Path) -> None:
    call = await caller.prepare("write_file", path="src/new.py", content="a\nb\n")
    assert call.title == "Create src/new.py"
    assert call.access.kind == "edit"
    assert call.details == FileChangeDetails(
        changes=(FileChange(path="src/new.py", change="create"),)
    )
    assert not (directory / "src").exists()  # preparing touches nothing
    result = await call.run(caller.context())
    assert (directory / "src/new.py").read_bytes() == b"a\nb\n"
    assert isinstance(result.details, FileChangeDetails)
    assert result.details.changes[0].diff == (
        "--- /dev/null\n+++ b/src/new.py\n@@ -0,0 +1,2 @@\n+a\n+b"
    )
    assert await caller.text("write_file", path="b", content="ä") == ("Created b: 1 line, 2 bytes.")


async def test_an_existing_file_must_have_been_read(caller: Caller, directory: Path) -> None:
    (directory / "a").write_text("user's own")
    for name, arguments in (
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "user", "new_text": "x"}),
    ):
        text = await caller.failure(name, path="a", **arguments)
        assert "was not read in this session" in text
        assert "read_file it first" in text
    assert (directory / "a").read_text() == "user's own"


async def test_a_file_that_changed_since_it_was_read(  # E4-1
    caller: Caller, directory: Path
) -> None:
    (directory / "a").write_text("one")
    await caller.call("read_file", path="a")
    stat = (directory / "a").stat()
    (directory / "a").write_text("two")
    os.utime(directory / "a", ns=(stat.st_atime_ns, stat.st_mtime_ns))  # size and times agree
    for name, arguments in (
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "two", "new_text": "x"}),
    ):
        assert "has changed since it was read" in await caller.failure(name, path="a", **arguments)
    assert (directory / "a").read_text() == "two"
    await caller.call("read_file", path="a")
    await caller.call("write_file", path="a", content="x")
    assert (directory / "a").read_text() == "x"


async def test_own_writes_refresh_what_is_known(caller: Caller, directory: Path) -> None:  # E4-2
    await caller.call("write_file", path="a", content="one\ntwo\n")
    await caller.call("edit_file", path="a", old_text="one", new_text="1")
    await caller.call("edit_file", path="a", old_text="two", new_text="2")
    await caller.call("write_file", path="a", content="3")
    assert (directory / "a").read_text() == "3"


async def test_a_touch_is_no_change(caller: Caller, directory: Path) -> None:  # E4-3
    (directory / "a").write_text("one")
    await caller.call("read_file", path="a")
    os.utime(directory / "a", ns=(1, 1))
    await caller.call("edit_file", path="a", old_text="one", new_text="two")
    assert (directory / "a").read_text() == "two"


async def test_a_file_is_known_by_where_it_really_is(caller: Caller, directory: Path) -> None:
    (directory / "a").write_text("one")
    (directory / "link").symlink_to("a")
    await caller.call("read_file", path="link")
    assert list(caller.reads) == [f"local:{directory}/a"]
    assert isinstance(caller.reads[f"local:{directory}/a"], ReadRecord)
    await caller.call("edit_file", path="./a", old_text="one", new_text="two")


async def test_a_partial_read_counts(caller: Caller, directory: Path) -> None:
    (directory / "a").write_text("1\n2\n3\n")
    await caller.call("read_file", path="a", offset=2, limit=1)
    await caller.call("edit_file", path="a", old_text="2", new_text="two")
    assert (directory / "a").read_text() == "1\ntwo\n3\n"


async def test_a_file_too_large_to_be_held_is_known_by_size_and_time(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FILE_WHOLE_BYTES_MAX", 1000)
    (directory / "big").write_text("x\n" * 1000)
    await caller.call("read_file", path="big")
    assert "too much for edit_file" in await caller.failure(
        "edit_file", path="big", old_text="x", new_text="y", replace_all=True
    )
    os.utime(directory / "big", ns=(1, 1))
    assert "has changed" in await caller.failure("write_file", path="big", content="y")
    await caller.call("read_file", path="big")
    await caller.call("write_file", path="big", content="y")
    assert (directory / "big").read_text() == "y"


@pytest.mark.parametrize(
    ("old", "content", "new", "said"),
    [
        (b"a\r\nb\r\n", "1\n2\n", b"1\r\n2\r\n", "CRLF line ends, as before"),
        (b"a\r\nb\n", "1\n2\n", b"1\n2\n", ""),
        (b"a\r\nb\r\n", "1\r\n2\n", b"1\r\n2\n", ""),
        (b"\xef\xbb\xbfa", "b", b"\xef\xbb\xbfb", "UTF-8 with a byte order mark"),
        (b"\xef\xbb\xbfa", "\ufeffb", b"\xef\xbb\xbfb", "byte order mark"),
        (
            "\ufeffa".encode("utf-16-be"), "数", "\ufeff数".encode("utf-16-be"),
            "in UTF-16-BE with a byte order mark, as before",
        ),
        ("数据".encode("gbk"), "数", "数".encode(), "in UTF-8, which the old content was not"),
        (b"a", "a", b"a", "holds exactly this already"),
    ],
)  # fmt: skip
async def test_what_a_file_keeps_when_it_is_replaced(  # E5-4
    caller: Caller, directory: Path, old: bytes, content: str, new: bytes, said: str
) -> None:
    (directory / "a").write_bytes(old)
    await caller.call("read_file", path="a")
    assert said in await caller.text("write_file", path="a", content=content)
    assert (directory / "a").read_bytes() == new
    # What was written is known: the next change needs no reading.
    await caller.call("write_file", path="a", content="next")


async def test_where_no_file_can_be(caller: Caller, directory: Path) -> None:
    (directory / "d").mkdir()
    (directory / "f").touch()
    assert "is a directory" in await caller.failure("write_file", path="d", content="")
    assert "f/x" in await caller.failure("write_file", path="f/x", content="")


async def test_a_path_outside_is_an_edit_outside(  # E1-1, E1-2, E1-3
    caller: Caller, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (directory / "out").symlink_to(tmp_path / "outside")
    evil = f"{directory}-evil/a"
    for path in ("out/x.txt", evil, "../../x", "./a/../../x", str(tmp_path / "x")):
        call = await caller.prepare("write_file", path=path, content="x")
        assert call.access.outside, path
        assert call.access.subject.startswith(str(tmp_path))
    inside = await caller.prepare("write_file", path="a/../b", content="x")
    assert (inside.access.outside, inside.access.subject) == (False, "b")


async def test_a_directory_swapped_for_a_link_after_the_call_was_allowed(
    caller: Caller, directory: Path, tmp_path: Path
) -> None:
    (directory / "d").mkdir()
    call = await caller.prepare("write_file", path="d/x", content="x")
    assert not call.access.outside
    (directory / "d").rmdir()
    (directory / "d").symlink_to(tmp_path)
    with pytest.raises(ToolFailure, match="another place"):
        await call.run(caller.context())
    assert not (tmp_path / "x").exists()


async def test_large_content_gets_a_bounded_diff(caller: Caller) -> None:
    result = await caller.call("write_file", path="a", content="x" * 100 + "\n" * 100_000)
    assert isinstance(result.details, FileChangeDetails)
    diff = result.details.changes[0].diff or ""
    assert len(diff.encode()) <= limits.DIFF_BYTES_MAX + 100
    assert diff.endswith("of the diff left out)")


async def test_locks_exclude_by_name_and_leave_nothing() -> None:
    locks = PathLocks()
    order: list[str] = []

    async def work(name: str, mark: str, scope: trio.CancelScope) -> None:
        with scope:
            async with locks.hold(name):
                order.append(mark)
                await wait_all_tasks_blocked()
                order.append(mark)

    given_up = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        for name, mark in (("a", "1"), ("a", "2"), ("b", "3")):
            nursery.start_soon(work, name, mark, trio.CancelScope())
        nursery.start_soon(work, "a", "4", given_up)
        given_up.cancel()
    assert "4" not in order
    marks = [mark for mark in order if mark != "3"]
    assert marks[0] == marks[1]
    assert marks[2] == marks[3]
    assert len(locks) == 0
