"""``write_file``: the whole content of a file."""

from __future__ import annotations

from vaala.tools.changes import ChangeTool, FileArguments, NewContent
from vaala.tools.diff import unified_diff
from vaala.tools.encoding import Binary, Decoded, decode
from vaala.tools.files import Loaded, shown
from vaala.tools.line_ends import all_crlf
from vaala.tools.locks import PathLocks
from vaala.tools.pages import split_lines
from vaala.tools.text import size_text
from vaala_executors.workspace import Place


class WriteArguments(FileArguments, frozen=True):
    content: str


class WriteFile(ChangeTool[WriteArguments]):
    """Creates a file, or replaces the content of one that was read.

    A file that is there keeps its byte order mark, its encoding (UTF-8, UTF-16, UTF-32) and, when
    all its lines end with CRLF, its line ends. One in another encoding becomes UTF-8, and the
    result says so.
    """

    def __init__(self, locks: PathLocks) -> None:
        super().__init__(
            "write_file",
            "Create a file, or replace all of one that was read. Makes missing directories.",
            WriteArguments,
            verb="Overwrite",
            locks=locks,
        )

    def make(self, arguments: WriteArguments, place: Place, before: Loaded | None) -> NewContent:
        old = Decoded("") if before is None else _decoded(before)
        text = arguments.content.removeprefix("\ufeff" if old.mark else "")
        kept: list[str] = []
        if all_crlf(old.text) and "\r" not in text:
            text = text.replace("\n", "\r\n")
            kept.append("with CRLF line ends, as before")
        if old.mark:
            kept.append(f"in {old.encoding.upper()} with a byte order mark, as before")
        if not old.known:
            kept.append("in UTF-8, which the old content was not")
        encoder = old if old.known else Decoded("")
        data = encoder.encode(text)
        comparable = before is None or (before.data is not None and old.known)
        diff = unified_diff(arguments.path, None if before is None else old.text, text)
        size = f"{size_text(len(split_lines(text)), 'line')}, {size_text(len(data), 'byte')}"
        if before is not None and data == before.data:
            return NewContent(data, None, f"{shown(place)} holds exactly this already: {size}.")
        said = f"{'Created' if before is None else 'Wrote'} {shown(place)}: {size}"
        return NewContent(data, diff if comparable else None, f"{', '.join([said, *kept])}.")


def _decoded(before: Loaded) -> Decoded:
    """Return the old text; of what is binary or too large to be held, only that it is not kept."""
    if before.data is None:
        return Decoded("")
    decoded = decode(before.data)
    return Decoded("", "latin-1") if isinstance(decoded, Binary) else decoded
