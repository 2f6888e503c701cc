"""``list_dir`` and ``search``: bounded, clean, and precise about what is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.vaala.tools.calling import Caller
from vaala.tools import limits
from vaala_protocol.calls import SearchDetails


async def test_a_listing(caller: Caller, directory: Path) -> None:
    (directory / "src").mkdir()
    (directory / "a.py").write_text("x" * 1234)
    (directory / "link").symlink_to("a.py")
    os.mkfifo(directory / "pipe")
    assert await caller.text("list_dir") == (
        "a.py  1,234\nlink@\npipe  (device, socket or FIFO)\nsrc/"
    )
    assert await caller.text("list_dir", path="src") == "src is empty."
    assert "a.py" in await caller.failure("list_dir", path="a.py")
    assert "none" in await caller.failure("list_dir", path="none")


async def test_a_large_directory(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIST_ENTRIES_MAX", 5)
    for number in range(12):
        (directory / f"f{number:02}").touch()
    note, *lines = (await caller.text("list_dir")).split("\n")
    assert note.startswith("5 of 12 entries are shown")
    assert lines == [f"f{number:02}  0" for number in range(5)]


async def test_names_that_are_no_text(caller: Caller, directory: Path) -> None:  # D8-1, D5-1
    for name in (b"a\nb", b"\xff\xfe", b"\x1b[2J", "\u202etxt".encode()):
        (directory / os.fsdecode(name)).touch()
    text = await caller.text("list_dir")
    assert text.count("\n") == 3
    assert all(char == "\n" or char.isprintable() for char in text)


async def test_search_by_line(caller: Caller, directory: Path) -> None:
    (directory / "src").mkdir()
    (directory / "src" / "a.py").write_text("import os\n\ndef FIND(): pass\nfind\n")
    (directory / "b.txt").write_text("find me\n")
    result = await caller.call("search", pattern="find", glob="*.py", ignore_case=True)
    assert isinstance(result.details, SearchDetails)
    assert result.details.matches == 2
    text = await caller.text("search", pattern="find", glob="*.py", ignore_case=True)
    assert text == "src/a.py\n3: def FIND(): pass\n4: find"
    assert await caller.text("search", pattern="find", path="b.txt") == "b.txt\n1: find me"
    assert await caller.text("search", pattern="nothing here") == "No matches."


async def test_search_by_name(caller: Caller, directory: Path) -> None:
    (directory / "a.py").touch()
    (directory / "b.txt").touch()
    assert await caller.text("search", glob="*.py") == "a.py"
    assert "give a pattern" in await caller.failure("search")
    assert "give a pattern" in await caller.failure("search", pattern="", glob="")


async def test_a_pattern_that_is_none(caller: Caller) -> None:
    assert "pattern is not valid" in await caller.failure("search", pattern="(")


async def test_many_matches(caller: Caller, directory: Path) -> None:  # E6-2
    (directory / "a").write_text("match " * 200 + "\n" * 1 + "match\n" * 1000)
    text = await caller.text("search", pattern="match")
    note, _, lines = text.partition("\na\n")
    assert note
    assert len(lines.split("\n")) <= limits.SEARCH_MATCHES_MAX
    assert max(map(len, lines.split("\n"))) <= limits.SEARCH_LINE_CHARS_MAX + 5


async def test_a_loop_of_links_ends(caller: Caller, directory: Path) -> None:  # E6-3
    (directory / "a").mkdir()
    (directory / "a" / "loop").symlink_to("..")
    (directory / "a" / "x").write_text("find")
    assert await caller.text("search", pattern="find") == "a/x\n1: find"


async def test_outside_is_told(caller: Caller, tmp_path: Path) -> None:
    for name in ("list_dir", "search"):
        arguments = {"pattern": "x"} if name == "search" else {}
        call = await caller.prepare(name, path=str(tmp_path), **arguments)
        assert (call.access.kind, call.access.outside) == ("read", True)
        await call.run(caller.context())
