"""Text files through a client: the person's buffers, and the disk wherever a client does not do.

The disk is a real one, so the clock is not a fake one that jumps while a thread works.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.services.conftest import Desk
from tests.vaala.services.fakes import Connection, FakeFiles
from tests.vaala.tools.scripted import ScriptedWorkspace
from vaala.services import limits
from vaala.services.base import Offer
from vaala.services.errors import ServiceFailure
from vaala.services.workspace import serviced
from vaala_executors import FileMissing, NotAFile, OutsideWorkspace, PathMoved
from vaala_executors.local import LocalExecutor
from vaala_protocol.base import Malformed
from vaala_protocol.errors import Refused, Stopping
from vaala_protocol.limits import MESSAGE_BYTES_MAX


def editor(desk: Desk, *, saves: bool = True, **buffers: str) -> FakeFiles:
    """An editor with the buffers open; what it writes it saves to disk."""
    files = FakeFiles({desk.path(name.replace("_", ".")): text for name, text in buffers.items()})
    if saves:
        files.saves = save
    return files


def save(path: str, text: str) -> None:
    Path(path).write_bytes(text.encode())


async def test_the_person_s_unsaved_text_is_read(desk: Desk) -> None:
    (desk.directory / "a.py").write_text("old\n")
    with desk.services.offer(Offer("Zed", files=editor(desk, a_py="new\n"))):
        assert "new" in await desk.caller.text("read_file", path="a.py")
    assert desk.served == ["Zed"]
    assert "old" in await desk.caller.text("read_file", path="a.py")
    assert desk.served == ["Zed"], "nobody served the last one"


async def test_an_edit_works_on_the_buffer_and_is_written_through_the_client(desk: Desk) -> None:
    (desk.directory / "a.py").write_text("one\ntwo\n")
    files = editor(desk, a_py="one\ntwo\nthree, not saved\n")
    with desk.services.offer(Offer("Zed", files=files)):
        await desk.caller.text("read_file", path="a.py")
        await desk.caller.text("edit_file", path="a.py", old_text="two", new_text="2")
        assert files.buffers[desk.path("a.py")] == "one\n2\nthree, not saved\n"
        await desk.caller.text("edit_file", path="a.py", old_text="one", new_text="1")
    assert desk.on_disk("a.py") == "1\n2\nthree, not saved\n"
    assert set(desk.served) == {"Zed"}
    # What the disk has now is what was written, so work goes on there.
    await desk.caller.text("edit_file", path="a.py", old_text="2", new_text="II")
    assert desk.on_disk("a.py") == "1\nII\nthree, not saved\n"


async def test_what_the_person_types_after_the_read_is_not_overwritten(desk: Desk) -> None:
    (desk.directory / "a.py").write_text("one\n")
    files = editor(desk, a_py="one\n")
    with desk.services.offer(Offer("Zed", files=files)):
        await desk.caller.text("read_file", path="a.py")
        files.buffers[desk.path("a.py")] = "one\nand more\n"  # E4-1, in the editor
        said = await desk.caller.failure("write_file", path="a.py", content="mine\n")
        assert "has changed since it was read" in said
        assert files.buffers[desk.path("a.py")] == "one\nand more\n"
    assert desk.on_disk("a.py") == "one\n"


async def test_a_read_from_disk_does_not_allow_to_overwrite_a_buffer(desk: Desk) -> None:
    (desk.directory / "a.py").write_text("one\n")
    await desk.caller.text("read_file", path="a.py")
    with desk.services.offer(Offer("Zed", files=editor(desk, a_py="one\nnot saved\n"))):
        said = await desk.caller.failure("edit_file", path="a.py", old_text="one", new_text="1")
        assert "has changed since it was read" in said
    with desk.services.offer(Offer("Zed", files=editor(desk, a_py="one\n"))):
        await desk.caller.text("edit_file", path="a.py", old_text="one", new_text="1")
    assert desk.on_disk("a.py") == "1\n", "equal bytes are the same file, whoever has them"


async def test_a_client_that_does_not_save_has_the_newest_text(desk: Desk) -> None:
    (desk.directory / "a.py").write_text("one\n")
    files = editor(desk, saves=False, a_py="one\n")
    connection = Connection(desk.services, Offer("Zed", files=files))
    await desk.caller.text("read_file", path="a.py")
    for old, new in (("one", "two"), ("two", "three")):
        await desk.caller.text("edit_file", path="a.py", old_text=old, new_text=new)
    assert desk.on_disk("a.py") == "one\n"
    connection.close()
    said = await desk.caller.failure("edit_file", path="a.py", old_text="one", new_text="1")
    assert "has changed since it was read" in said


async def test_a_new_file(desk: Desk) -> None:
    files = editor(desk)
    with desk.services.offer(Offer("Zed", files=files)):
        await desk.caller.text("write_file", path="new.py", content="x\n")
        await desk.caller.text("edit_file", path="new.py", old_text="x", new_text="y")
    assert desk.on_disk("new.py") == "y\n"
    assert "new.py" in files.manner.asked[-1]


async def test_a_file_that_only_the_editor_has(desk: Desk) -> None:
    files = editor(desk, saves=False, draft_py="x\n")
    with desk.services.offer(Offer("Zed", files=files)):
        said = await desk.caller.failure("write_file", path="draft.py", content="y\n")
        assert "was not read in this session" in said
        assert "x" in await desk.caller.text("read_file", path="draft.py")
        await desk.caller.text("write_file", path="draft.py", content="y\n")
        assert files.buffers[desk.path("draft.py")] == "y\n"
        stat = (await desk.workspace.read_whole("draft.py", 100)).stat
        assert (stat.kind, stat.size, stat.mtime_ns) == ("file", 2, 0)
    with pytest.raises(FileMissing):
        await desk.workspace.read_whole("draft.py", 100)
    assert not (desk.directory / "draft.py").exists()


async def test_the_client_is_named_the_path_that_a_person_opens(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    """Through the link by which the directory was given; outside of it, where it really is."""
    (tmp_path / "real").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("real")
    for name in ("real/a", "other/b"):
        (tmp_path / name).write_text("disk")
    files = FakeFiles({str(tmp_path / "link/a"): "buffer", str(tmp_path / "other/b"): "buffer"})
    async with LocalExecutor() as executor:
        opened = executor.open_workspace(str(tmp_path / "link"), [str(tmp_path / "other")])
        async with opened as inner:
            desk = Desk(tmp_path / "link", inner, nursery)
            with desk.services.offer(Offer("Zed", files=files)):
                assert await desk.workspace.read("a") == b"buffer"
                assert await desk.workspace.read("../other/b") == b"buffer"


async def test_a_part_of_a_file(desk: Desk) -> None:
    (desk.directory / "a").write_text("0123456789")
    with desk.services.offer(Offer("Zed", files=editor(desk, a="abcdefghij"))):
        assert await desk.workspace.read("a", offset=2, length=3) == b"cde"
        assert await desk.workspace.read("a", offset=8) == b"ij"
    assert await desk.workspace.read("a", offset=2, length=3) == b"234"


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0",
        "caf\xe9 and more words".encode("latin-1"),
        "\ufeffwords".encode("utf-16-le"),
        b"x" * (limits.TEXT_BYTES_MAX + 1),
    ],
    ids=["binary", "latin-1", "utf-16", "large"],
)
async def test_what_no_client_is_given(desk: Desk, data: bytes) -> None:
    (desk.directory / "f").write_bytes(data)
    files = editor(desk, f="something else")
    with desk.services.offer(Offer("Zed", files=files)):
        assert (await desk.workspace.read_whole("f", 1 << 30)).data == data
        assert await desk.workspace.read("f") == data
        await desk.workspace.write("f", data + b"!")
        await desk.workspace.write("f", b"plain text over it")
        await desk.workspace.write("new", data)
    assert (desk.directory / "f").read_bytes() == b"plain text over it"
    assert (desk.directory / "new").read_bytes() == data
    assert files.manner.asked == []
    assert desk.served == []


async def test_a_text_larger_than_was_asked_for_is_the_disk_s(desk: Desk) -> None:
    (desk.directory / "a").write_text("disk")
    with desk.services.offer(Offer("Zed", files=editor(desk, a="buffer", b="buffer"))):
        assert (await desk.workspace.read_whole("a", 5)).data == b"disk"
        with pytest.raises(FileMissing):
            await desk.workspace.read_whole("b", 5)


async def test_a_name_that_no_json_holds_is_the_disk_s(desk: Desk) -> None:
    name = os.fsdecode(b"\xff.txt")
    (desk.directory / name).write_text("disk")
    files = editor(desk)
    with desk.services.offer(Offer("Zed", files=files)):
        assert await desk.workspace.read(name) == b"disk"
        await desk.workspace.write(name, b"new")
    assert desk.on_disk(name) == "new"
    assert files.manner.asked == []


async def test_an_offer_without_reading_or_writing(desk: Desk) -> None:
    (desk.directory / "a").write_text("disk")
    files = editor(desk, saves=False, a="buffer")
    offer = Offer("Zed", files=files, writes=False)
    with desk.services.offer(offer):
        await desk.workspace.write("a", b"new")
        assert await desk.workspace.read("a") == b"buffer"
    assert desk.on_disk("a") == "new"
    files.manner.asked.clear()
    with desk.services.offer(Offer("Zed", files=files, reads=False)):
        assert await desk.workspace.read("a") == b"new"
        await desk.workspace.write("a", b"newer")
    assert files.manner.asked == [f"write {desk.path('a')}"]
    assert desk.on_disk("a") == "new"


@pytest.mark.parametrize("error", [None, Stopping("the connection has ended")])
async def test_a_client_that_goes_in_the_middle_of_a_read_leaves_the_disk(
    desk: Desk, nursery: trio.Nursery, error: Exception | None
) -> None:
    (desk.directory / "a").write_text("disk")
    files = editor(desk, a="buffer")
    files.manner.error, files.manner.silent = error, error is None
    connection = Connection(desk.services, Offer("Zed", files=files))

    async def leave() -> None:
        await files.manner.news.wait()
        connection.close()

    nursery.start_soon(leave)
    assert "disk" in await desk.caller.text("read_file", path="a")
    assert desk.served == []


async def test_a_client_that_goes_in_the_middle_of_a_write(desk: Desk) -> None:
    (desk.directory / "a").write_text("disk\n")
    files = editor(desk, a="disk\n")
    connection = Connection(desk.services, Offer("Zed", files=files))
    await desk.caller.text("read_file", path="a")

    def save_and_go(path: str, text: str) -> None:
        save(path, text)
        connection.close()

    files.saves, files.silent_when_written = save_and_go, True
    said = await desk.caller.failure("edit_file", path="a", old_text="disk", new_text="new")
    assert "the client Zed went away when asked to write" in said
    assert "whether it was done is not known" in said
    assert desk.on_disk("a") == "new\n", "it was"
    said = await desk.caller.failure("write_file", path="a", content="again\n")
    assert "has changed since it was read" in said, "so the agent finds out before it goes on"


async def test_a_client_that_does_not_answer(
    desk: Desk, mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    (desk.directory / "a").write_text("disk")
    files = editor(desk, a="buffer")
    files.manner.silent = True
    texts: list[str] = []

    async def call(what: str) -> None:
        texts.append(
            await desk.caller.failure("read_file", path="a")
            if what == "read"
            else await desk.caller.failure("write_file", path="n", content="x")
        )

    for what, seconds in (("read", limits.FILE_READ_S), ("write", limits.FILE_READ_S)):
        files.manner.news = trio.Event()
        with desk.services.offer(Offer("Zed", files=files)):
            nursery.start_soon(call, what)
            await files.manner.news.wait()
            await wait_all_tasks_blocked()
            mock_clock.jump(seconds)
            while not texts:
                await trio.lowlevel.checkpoint()
        assert f"gave no answer within {seconds:g} s" in texts.pop()


@pytest.mark.parametrize("error", [Malformed("no text"), Refused("permission denied")])
async def test_a_client_that_refuses_or_answers_garbage_is_not_passed_over(
    desk: Desk, error: Exception
) -> None:
    """Its text may hold changes that the disk has not."""
    (desk.directory / "a").write_text("disk")
    files = editor(desk, a="buffer")
    files.manner.error = error
    with desk.services.offer(Offer("Zed", files=files)):
        assert "the client Zed" in await desk.caller.failure("read_file", path="a")
        with pytest.raises(ServiceFailure):
            await desk.workspace.write("a", b"x")
    assert desk.on_disk("a") == "disk"


async def test_a_path_is_confined_before_a_client_is_asked(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (desk.directory / "d").mkdir()
    files = FakeFiles({str(tmp_path / "secret"): "buffer", desk.path("d"): "buffer"})
    with desk.services.offer(Offer("Zed", files=files)):
        for path in ("../../secret", str(tmp_path / "secret"), "../../nothing-there"):
            with pytest.raises(OutsideWorkspace):
                await desk.workspace.read_whole(path, 100)
            with pytest.raises(OutsideWorkspace):
                await desk.workspace.write(path, b"x")
        with pytest.raises(NotAFile):
            await desk.workspace.read("d")
        (desk.directory / "a").write_text("a")
        place = await desk.workspace.find("a")
        (desk.directory / "a").unlink()
        (desk.directory / "a").symlink_to(tmp_path / "secret")
        with pytest.raises(PathMoved):
            await desk.workspace.read_whole(place, 100)
        with pytest.raises(PathMoved):
            await desk.workspace.write(place, b"x")
        # A place outside that somebody has allowed is served like any other.
        outside = await desk.workspace.find(str(tmp_path / "secret"))
        assert (await desk.workspace.read_whole(outside, 100)).data == b"buffer"
    assert len(files.manner.asked) == 1


async def test_the_rest_is_the_disk_s(desk: Desk) -> None:
    files = editor(desk, b="x")
    with desk.services.offer(Offer("Zed", files=files)):
        (desk.directory / "a").write_text("needle")
        await desk.workspace.rename("a", "c")
        assert [entry.name for entry in await desk.workspace.list(".")] == ["c"]
        assert "needle" in await desk.caller.text("search", pattern="needle")
        await desk.workspace.remove("c")
        assert (await desk.workspace.find("c")).stat is None
        assert desk.workspace.directory == str(desk.directory)
    assert files.manner.asked == []


async def test_other_executors_are_nobody_s_to_serve(desk: Desk) -> None:
    elsewhere = ScriptedWorkspace()
    assert serviced(elsewhere, desk.services, desk.environment, desk.served.append) is elsewhere


async def test_marks_and_line_ends_that_the_client_hides_are_its_own(desk: Desk) -> None:
    """It shows the text without them, and puts them back."""
    (desk.directory / "a").write_bytes("\ufeffone\r\ntwo\r\n".encode())
    files = editor(desk, a="one\ntwo\n")

    def save_as_it_was(path: str, text: str) -> None:
        save(path, "\ufeff" + text.replace("\n", "\r\n"))

    files.saves = save_as_it_was
    with desk.services.offer(Offer("Zed", files=files)):
        await desk.caller.text("read_file", path="a")
        await desk.caller.text("edit_file", path="a", old_text="two", new_text="2")
        await desk.caller.text("edit_file", path="a", old_text="one", new_text="1")
    assert desk.on_disk("a") == "\ufeff1\r\n2\r\n"


async def test_marks_and_line_ends_that_the_client_shows_stay(desk: Desk) -> None:
    (desk.directory / "a").write_bytes("\ufeffone\r\ntwo\r\n".encode())
    files = editor(desk, a="\ufeffone\r\ntwo\r\n")
    with desk.services.offer(Offer("Zed", files=files)):
        await desk.caller.text("read_file", path="a")
        await desk.caller.text("edit_file", path="a", old_text="two", new_text="2")
    assert desk.on_disk("a") == "\ufeffone\r\n2\r\n"


async def test_a_call_s_context_tells_who_served_it(desk: Desk) -> None:
    """The way of a session: one view of the workspace for each call, and its context."""
    (desk.directory / "a").write_text("disk")
    with desk.services.offer(Offer("Zed", files=editor(desk, a="buffer"))):
        call = await desk.caller.prepare("read_file", path="a")
        told: list[str] = []
        view = serviced(desk.inner, desk.services, desk.environment, told.append)
        context = desk.caller.context()
        result = await call.run(replace(context, workspace=view, served=told.append))
    assert "buffer" in str(result.content)
    assert told == ["Zed"]


def test_a_text_of_any_characters_fits_one_message() -> None:
    """The most that JSON makes of a byte, and of one of a longer character, is six."""
    for character in ("\x01", "é", "\U0001f600"):
        text = character * (limits.TEXT_BYTES_MAX // len(character.encode()))
        escaped = json.dumps({"jsonrpc": "2.0", "id": 2**53, "result": {"text": text}})
        assert len(escaped) <= MESSAGE_BYTES_MAX
