"""What a call that waits for approval would do, as the person who decides needs to see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import trio

from vaala.tools.diff import unified_diff
from vaala.tools.encoding import Decoded, decode
from vaala.tools.limits import EDIT_PLACES_MAX, FILE_WHOLE_BYTES_MAX
from vaala.tools.line_ends import LfView
from vaala.tools.matching import apply, find
from vaala.tools.text import clean, size_text
from vaala_protocol.base import Malformed
from vaala_protocol.base import decode as decode_json
from vaala_protocol.calls import CommandDetails, FileChangeDetails
from vaala_protocol.items import ToolCall

SHOWN_LINES_MAX = 40
SHOWN_LINE_CHARS_MAX = 1000
_HEAD_LINES = 2
"""Of a diff: they name the file, which the question does already."""


async def preview(call: ToolCall, directory: str) -> list[str]:
    """Return the lines to show: the command, the change as a diff, or the arguments.

    ``directory`` is where relative paths begin. Reads the file that would be changed.
    """
    match call.details:
        case CommandDetails(command=command, cwd=cwd):
            return [*_bounded(clean(command).split("\n")), f"in {clean(cwd)}"]
        case FileChangeDetails(executor="local"):
            given = _arguments(call)
            text = await trio.to_thread.run_sync(_change, given, directory)
            return _bounded(_argument_lines(call) if text is None else text)
        case _:
            return _bounded(_argument_lines(call))


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        given = decode_json(call.arguments.encode("utf-8", "surrogatepass"))
    except Malformed:
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _argument_lines(call: ToolCall) -> list[str]:
    given = _arguments(call)
    if not given:
        return clean(call.arguments).split("\n")
    lines: list[str] = []
    for name, value in given.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += clean(f"{name}: {shown}").split("\n")
    return lines


def _change(given: dict[str, Any], directory: str) -> list[str] | None:
    """Return the lines of a diff; None for a call that is neither of the two known ones."""
    match given:
        case {"path": str(path), "content": str(content)}:
            return _diff(path, _text_of(Path(directory, path)), content)
        case {"path": str(path), "old_text": str(old), "new_text": str(new)} if old:
            before = _text_of(Path(directory, path))
            view = LfView(before or "")
            change = find(view, old, new)
            everywhere = given.get("replace_all") is True
            if 1 <= len(change.at) <= (EDIT_PLACES_MAX if everywhere else 1):
                return _diff(path, before, apply(view, change))
            # It will fail when it runs; what was meant can be seen all the same.
            return _diff(path, old, new)
        case _:
            return None


def _diff(path: str, before: str | None, after: str) -> list[str]:
    return unified_diff(path, before, after).split("\n")[_HEAD_LINES:] or ["(nothing changes)"]


def _text_of(path: Path) -> str | None:
    """Return the text of a file; None when there is none, or none that can be compared."""
    try:
        if not path.is_file() or path.stat().st_size > FILE_WHOLE_BYTES_MAX:
            return None
        decoded = decode(path.read_bytes())
    except (OSError, ValueError):
        return None
    return decoded.text if isinstance(decoded, Decoded) else None


def _bounded(lines: list[str]) -> list[str]:
    """Return the first lines, and how much more there is: nobody approves unseen text unawares."""
    shown = [_cut(line) for line in lines[:SHOWN_LINES_MAX]]
    if more := len(lines) - len(shown):
        shown.append(f"… {size_text(more, 'more line')} not shown")
    return shown


def _cut(line: str) -> str:
    more = len(line) - SHOWN_LINE_CHARS_MAX
    return line if more <= 0 else f"{line[:SHOWN_LINE_CHARS_MAX]}… {more:,} more characters"
