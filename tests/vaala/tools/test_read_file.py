"""``read_file``: pages with exact numbers, encodings told, nothing unclean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from tests.vaala.tools.calling import Caller
from vaala.permissions.base import Access
from vaala.permissions.rules import parse_rule
from vaala.tools import limits
from vaala.tools.base import ToolFailure
from vaala_executors.local import LocalExecutor
from vaala_protocol.calls import ReadDetails
from vaala_protocol.content import TextContent


async def blocks(caller: Caller, path: str, **arguments: object) -> list[str]:
    result = await caller.call("read_file", path=path, **arguments)
    return [block.text for block in result.content if isinstance(block, TextContent)]


async def test_a_whole_file_is_its_text_alone(caller: Caller, directory: Path) -> None:
    (directory / "a.py").write_bytes(b"one\r\n\ttwo\n\nf\xc3\xbcnf \xe6\x95\xb0\n")
    assert await blocks(caller, "a.py") == ["one\n\ttwo\n\nfünf 数"]


async def test_what_the_call_is(caller: Caller) -> None:
    call = await caller.prepare("read_file", path="src/a.py")
    assert call.details == ReadDetails(path="src/a.py")
    assert call.title == "Read src/a.py"
    assert (call.access.kind, call.access.subject, call.access.outside) == (
        "read", "src/a.py", False,
    )  # fmt: skip


async def test_a_page_says_how_to_go_on(caller: Caller, directory: Path) -> None:
    (directory / "a").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    note, text = await blocks(caller, "a", offset=11, limit=2)
    assert text == "line 11\nline 12"
    assert note == "Lines 11-12 of 1,000. Go on with offset=13."
    assert await blocks(caller, "a", offset=1000) == ["Line 1,000 of 1,000.", "line 1000"]


async def test_a_page_is_bounded_in_lines_and_bytes(caller: Caller, directory: Path) -> None:
    (directory / "many").write_text("x\n" * 5000)
    note, text = await blocks(caller, "many", limit=4000)
    assert text.count("\n") == limits.READ_LINES_MAX - 1
    assert note == "Lines 1-2,000 of 5,000. Go on with offset=2001."
    (directory / "wide").write_text("ä" * 1000 + "\n" + ("y" * 999 + "\n") * 100)
    note, text = await blocks(caller, "wide")
    assert len(text.encode()) <= limits.READ_BYTES_MAX
    shown = text.count("\n") + 1
    assert note == f"Lines 1-{shown} of 101. Go on with offset={shown + 1}."


async def test_one_huge_line(caller: Caller, directory: Path) -> None:  # E6-1
    (directory / "min.js").write_text("x" * 2_000_000)
    note, text = await blocks(caller, "min.js")
    assert text == "x" * limits.READ_LINE_CHARS_MAX
    assert "line 1 (2,000,000 characters)" in note


@pytest.mark.parametrize(
    ("offset", "said"), [(4, "has 3 lines; offset 4"), (10**9, "offset 1,000,000,000")]
)
async def test_beyond_the_end(  # E6-4
    caller: Caller, directory: Path, offset: int, said: str
) -> None:
    (directory / "a").write_text("1\n2\n3\n")
    assert said in await caller.failure("read_file", path="a", offset=offset)


async def test_nothing_to_show(caller: Caller, directory: Path) -> None:  # E6-4
    (directory / "empty").touch()
    assert await blocks(caller, "empty") == ["empty is empty."]
    assert "has 0 lines" in await caller.failure("read_file", path="empty", offset=2)
    (directory / "blank").write_text("\n\n")
    assert "blank" in (await blocks(caller, "blank"))[0]


async def test_what_is_no_file(caller: Caller, directory: Path) -> None:  # E6-4, E1-5
    (directory / "d").mkdir()
    assert "d is a directory; list_dir" in await caller.failure("read_file", path="d")
    os.mkfifo(directory / "pipe")
    assert "is a FIFO, not a file" in await caller.failure("read_file", path="pipe")
    assert "is a device, not a file" in await caller.failure("read_file", path="/dev/zero")
    assert "nothing" in await caller.failure("read_file", path="nothing")
    assert "NUL" in await caller.failure("read_file", path="a\0b")
    assert "empty" in await caller.failure("read_file", path="")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-8"])
async def test_byte_order_marks(caller: Caller, directory: Path, encoding: str) -> None:
    (directory / "a").write_bytes("\ufeffzwölf 数\r\nb".encode(encoding))
    shown = await blocks(caller, "a")
    assert shown[-1] == "zwölf 数\nb"
    assert len(shown) == (1 if encoding == "utf-8" else 2)


async def test_a_file_in_an_unknown_encoding_says_so(caller: Caller, directory: Path) -> None:
    (directory / "a").write_bytes("é".encode("latin-1") * 300 + b"\nok")
    note, text = await blocks(caller, "a")
    assert text == "é" * 300 + "\nok"
    assert "not UTF-8" in note


@pytest.mark.parametrize(
    "data",
    [b"\x89PNG\r\n\x1a\n\0\0\0", bytes(range(256)) * 10, b"\0" * 100, "ab".encode("utf-16-le") * 9],
)
async def test_binary_is_named_and_not_shown(caller: Caller, directory: Path, data: bytes) -> None:
    (directory / "a").write_bytes(data)
    (said,) = await blocks(caller, "a")
    assert said.startswith("a is not text:")
    assert f"{len(data):,} bytes" in said


@pytest.mark.parametrize(
    "data",
    [b"a\0b" + b"c" * 50, b"\xed\xa1\x80 lone surrogate", b"\x1b[2Jx" * 9, "\u202ex".encode()],
)
async def test_unclean_text_is_made_visible(  # D5-1, D5-2
    caller: Caller, directory: Path, data: bytes
) -> None:
    (directory / "a").write_bytes(data)
    note, text = await blocks(caller, "a")
    assert "shown as" in note
    assert all(char == "\n" or char.isprintable() for char in text)


async def test_only_a_newline_ends_a_line(caller: Caller, directory: Path) -> None:  # E2-5
    (directory / "a").write_text("a\u2028b\x0cc\nd\n")
    assert (await blocks(caller, "a", offset=2))[-1] == "d"


async def test_a_file_that_is_too_large_to_be_held(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FILE_WHOLE_BYTES_MAX", 100_000)
    monkeypatch.setattr(limits, "READ_CHUNK_BYTES", 4096)
    (directory / "big").write_text("".join(f"{n:09}\n" for n in range(1, 50_001)))
    note, text = await blocks(caller, "big", offset=30_000, limit=2)
    assert text == "000030000\n000030001"
    assert "Go on with offset=30002" in note
    assert "500,000 bytes" in note
    assert (await blocks(caller, "big", offset=50_000))[-1] == "000050000"
    assert "has 50,000 lines" in await caller.failure("read_file", path="big", offset=50_001)
    monkeypatch.setattr(limits, "READ_SCAN_BYTES_MAX", 10_000)
    assert "lies after its first" in await caller.failure("read_file", path="big", offset=9_000)


async def test_one_line_that_is_too_large_to_be_held(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FILE_WHOLE_BYTES_MAX", 100_000)
    (directory / "big").write_text("é" * 200_000)
    note, text = await blocks(caller, "big")
    assert text == "é" * limits.READ_LINE_CHARS_MAX
    assert "or more" in note


async def test_a_path_outside_is_told_before_it_is_read(caller: Caller, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    (Path(caller.workspace.directory) / "link").symlink_to(secret)
    for path in (str(secret), "../../secret", "link"):  # E1-1, E1-3
        call = await caller.prepare("read_file", path=path)
        assert call.access.outside
        assert call.access.subject == str(secret)
        # The gate said yes: the call may read it.
        assert (await call.run(caller.context())).content == (TextContent(text="s"),)


async def test_a_rule_names_a_path_below_a_working_directory_that_is_a_link(
    nursery: trio.Nursery, directory: Path, tmp_path: Path
) -> None:
    (directory / "a").write_text("a")
    (tmp_path / "link").symlink_to(directory)
    async with (
        LocalExecutor() as executor,
        executor.open_workspace(str(tmp_path / "link")) as workspace,
    ):
        caller = Caller(workspace, nursery)
        for path in ("a", str(tmp_path / "link" / "a"), str(directory / "a")):
            access = (await caller.prepare("read_file", path=path)).access
            assert (access.subject, access.outside) == ("a", False)


async def test_a_denial_holds_for_every_name_of_a_path(caller: Caller, directory: Path) -> None:
    (directory / "d").mkdir()
    (directory / "d" / "a").write_text("a")
    (directory / "link").symlink_to("d/a")
    for rule in ("d/a", "./d/../d/a", f"{directory}/d/a", "link", f"{directory}/link"):
        denied = parse_rule(f"read_file({rule})")
        assert denied.denies(await access_of(caller, "link"))
        through_link = "link" in rule
        for path in ("d/a", f"{directory}/d//a"):
            assert denied.denies(await access_of(caller, path)) is not through_link
        assert not denied.denies(await access_of(caller, "d"))
    # What is allowed is what it really is: a link may lead elsewhere tomorrow.
    assert not parse_rule("read_file(link)").allows(await access_of(caller, "link"))


async def access_of(caller: Caller, path: str) -> Access:
    return (await caller.prepare("read_file", path=path)).access


@pytest.mark.parametrize("goal", ["../../secret", "b"])
async def test_a_path_that_leads_elsewhere_after_it_was_allowed(
    caller: Caller, directory: Path, tmp_path: Path, goal: str
) -> None:
    (tmp_path / "secret").write_text("s")
    (directory / "a").write_text("a")
    (directory / "b").write_text("b")
    call = await caller.prepare("read_file", path="a")
    (directory / "a").unlink()
    (directory / "a").symlink_to(goal)
    with pytest.raises(ToolFailure, match="another place"):
        await call.run(caller.context())


async def test_saved_output_is_read_by_its_name(caller: Caller) -> None:
    caller.blobs.kept["k"] = b"".join(b"row %d\n" % n for n in range(1, 101))
    call = await caller.prepare("read_file", path="blob:k", offset=50, limit=1)
    assert call.access.kind == "none"
    note, text = await blocks(caller, "blob:k", offset=50, limit=1)
    assert (note, text) == ("Line 50 of 100. Go on with offset=51.", "row 50")
    assert "no saved output" in await caller.failure("read_file", path="blob:x")
