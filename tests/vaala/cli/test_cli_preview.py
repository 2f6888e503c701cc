"""What a person sees of a call before they allow it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vaala.cli.preview import SHOWN_LINES_MAX, preview
from vaala_protocol.calls import (
    CallDetails,
    CommandDetails,
    FileChange,
    FileChangeDetails,
    OtherDetails,
)
from vaala_protocol.items import ToolCall


def _call(details: CallDetails, **arguments: Any) -> ToolCall:
    return ToolCall(
        id="i", session_id="s", turn_id="t", at=1, created_at=0, name="tool",
        arguments=json.dumps(arguments), details=details,
    )  # fmt: skip


def _change(**arguments: Any) -> ToolCall:
    path = arguments["path"]
    return _call(FileChangeDetails(changes=(FileChange(path=path, change="edit"),)), **arguments)


async def test_a_command_is_shown_as_it_is_with_its_directory() -> None:
    command = "make \\\n  test && echo 'a  b'"
    call = _call(CommandDetails(command=command, cwd="/src"), command=command)
    assert await preview(call, "/") == ["make \\", "  test && echo 'a  b'", "in /src"]


async def test_a_change_is_shown_as_a_diff(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    write = _change(path="a.txt", content="one\n2\nthree\n")
    edit = _change(path="a.txt", old_text="two", new_text="2")
    lines = ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]
    assert await preview(write, str(tmp_path)) == lines
    assert await preview(edit, str(tmp_path)) == lines


@pytest.mark.parametrize("content", [None, b"\0\1", b"other"])
async def test_an_edit_that_cannot_be_placed_shows_what_was_meant(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "a").write_bytes(content)
    shown = await preview(_change(path="a", old_text="two\n", new_text="2\n"), str(tmp_path))
    assert shown == ["@@ -1,1 +1,1 @@", "-two", "+2"]


async def test_a_long_change_says_how_much_more_there_is(tmp_path: Path) -> None:
    shown = await preview(_change(path="a", content="line\n" * 100), str(tmp_path))
    assert len(shown) == SHOWN_LINES_MAX + 1
    assert shown[-1] == "… 61 more lines not shown"


async def test_other_calls_show_their_arguments_by_name() -> None:
    call = _call(OtherDetails(title="Ask"), text="a\nb\x1b[2J", count=3, deep={"x": [1]})
    shown = await preview(call, "/")
    assert shown[0] == "text: a"
    assert "\x1b" not in "".join(shown)
    assert shown[2:] == ["count: 3", 'deep: {"x": [1]}']
