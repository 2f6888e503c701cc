"""``edit_file``: replace an exact text in a file."""

from __future__ import annotations

from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolFailure
from vaala.tools.changes import ChangeTool, FileArguments, NewContent
from vaala.tools.diff import unified_diff
from vaala.tools.encoding import Binary, Decoded, decode
from vaala.tools.files import Loaded, shown
from vaala.tools.line_ends import LfView, to_lf
from vaala.tools.locks import PathLocks
from vaala.tools.matching import Replacement, apply, find
from vaala.tools.nearest import nearest
from vaala.tools.text import size_text
from vaala_executors.workspace import Place, Workspace


class EditArguments(FileArguments, frozen=True):
    old_text: str
    new_text: str
    replace_all: bool = False


class EditFile(ChangeTool[EditArguments]):
    """Replaces text that occurs exactly once, or everywhere with ``replace_all``.

    Line ends are matched whatever they are, and each line keeps its own; new lines take that of
    their neighbour. Byte order mark, encoding and a missing newline at the end stay.
    """

    def __init__(self, locks: PathLocks) -> None:
        super().__init__(
            "edit_file",
            "Replace old_text, which must occur exactly once, in a file that was read. Copy it "
            "exactly, with white space.",
            EditArguments,
            verb="Edit",
            locks=locks,
        )

    async def plan(self, arguments: EditArguments, workspace: Workspace) -> PreparedCall:
        if not arguments.old_text:
            raise ToolFailure(
                "edit_file was not run: old_text is empty. Give the text to replace, or use "
                "write_file for a new file"
            )
        if to_lf(arguments.old_text) == to_lf(arguments.new_text):
            raise ToolFailure(
                "edit_file was not run: old_text and new_text are the same, so nothing would change"
            )
        return await super().plan(arguments, workspace)

    def make(self, arguments: EditArguments, place: Place, before: Loaded | None) -> NewContent:
        decoded = _text_of(place, before)
        _check_writable(arguments, place, decoded)
        view = LfView(decoded.text)
        change = find(view, arguments.old_text, arguments.new_text)
        _check_places(arguments, place, view, change)
        grown = len(change.at) * (len(change.new) - len(change.old))
        if len(view.original) + grown > limits.FILE_WHOLE_BYTES_MAX:
            raise ToolFailure(
                f"{shown(place)} would become larger than "
                f"{size_text(limits.FILE_WHOLE_BYTES_MAX, 'byte')}; nothing was changed"
            )
        text = apply(view, change)
        diff = unified_diff(arguments.path, decoded.text, text)
        places = _lines_named(view, change)
        return NewContent(decoded.encode(text), diff, f"Edited {shown(place)} at {places}.")


def _text_of(place: Place, before: Loaded | None) -> Decoded:
    if before is None:
        raise ToolFailure(f"{shown(place)} does not exist; write_file creates a file")
    if before.data is None:
        raise ToolFailure(
            f"{shown(place)} has {size_text(before.stat.size, 'byte')}, too much for edit_file "
            f"({limits.FILE_WHOLE_BYTES_MAX:,} bytes); change it with a command"
        )
    decoded = decode(before.data)
    if isinstance(decoded, Binary):
        raise ToolFailure(f"{shown(place)} is not text but {decoded.what}; it was not changed")
    return decoded


def _check_writable(arguments: EditArguments, place: Place, decoded: Decoded) -> None:
    """In an unknown encoding only characters that are there already can be written."""
    if decoded.known:
        return
    new = {char for char in arguments.new_text if not char.isascii()} - set(arguments.old_text)
    if new:
        raise ToolFailure(
            f"{shown(place)} is not UTF-8 and its encoding is not known, so new_text can only "
            f"add ASCII characters to it, not {', '.join(sorted(new)[:5])}. Nothing was changed"
        )


def _check_places(
    arguments: EditArguments, place: Place, view: LfView, change: Replacement
) -> None:
    count = len(change.at)
    if count == 0:
        raise ToolFailure(
            f"old_text was not found in {shown(place)}, and nothing was changed. "
            f"{nearest(view.text, change.old)}"
        )
    if count > limits.EDIT_PLACES_MAX:
        raise ToolFailure(
            f"old_text occurs more than {limits.EDIT_PLACES_MAX:,} times in {shown(place)}; "
            "nothing was changed"
        )
    if count > 1 and not arguments.replace_all:
        raise ToolFailure(
            f"old_text occurs {count:,} times in {shown(place)}, at {_lines_named(view, change)}; "
            "nothing was changed. Add lines around it until it is unique, or set replace_all"
        )


def _lines_named(view: LfView, change: Replacement) -> str:
    """Return the line numbers of the places in the file as it was."""
    named = change.at[: limits.EDIT_PLACES_NAMED_MAX]
    lines = [f"{view.text.count(chr(10), 0, at) + 1:,}" for at in named]
    more = len(change.at) - len(named)
    rest = f" and {more:,} more" if more else ""
    return f"{'lines' if len(lines) > 1 else 'line'} {', '.join(lines)}{rest}"
