"""Pages of a text: some lines of a file, bounded, with exact numbers of what is not shown."""

from __future__ import annotations

import codecs
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from vaala.tools import limits
from vaala.tools.base import ToolFailure
from vaala.tools.text import clean, is_clean, size_text

Read: TypeAlias = Callable[[int, int], Awaitable[bytes]]
"""Bytes from an offset, at most a length; fewer only at the end."""


class Page(Struct, frozen=True):
    text: str
    """The lines as they are, without the last line end; control characters made visible."""
    notes: tuple[str, ...]
    """What a reader must know of it; empty for a whole text that is shown as it is."""


def page_of(lines: Sequence[str], first: int, lines_max: int, *, total: int | None) -> Page:
    """Show lines that begin at number ``first``.

    ``total`` counts the lines of the text; None: it goes on after ``lines``, nobody knows how far.
    """
    shown: list[str] = []
    long: list[str] = []
    size = 0
    for number, line in enumerate(lines[: min(lines_max, limits.READ_LINES_MAX)], first):
        part = line[: limits.READ_LINE_CHARS_MAX]
        size += len(part.encode("utf-8", "replace")) + 1
        if shown and size > limits.READ_BYTES_MAX:
            break
        shown.append(part)
        if len(part) < len(line):
            more = " or more" if total is None and number == first + len(lines) - 1 else ""
            long.append(f"line {number:,} ({size_text(len(line), 'character')}{more})")
    text = "\n".join(shown)
    notes = _notes(first, first + len(shown) - 1, total)
    if long:
        names = ", ".join(long[:5]) + (f" and {len(long) - 5} more" if len(long) > 5 else "")
        notes.append(f"Cut to {limits.READ_LINE_CHARS_MAX:,} characters: {names}.")
    if not is_clean(text):
        notes.append("Control characters are shown as symbols (NUL as \u2400).")
    if not text.strip():
        notes.append("What is shown is blank.")
    return Page(clean(text), tuple(notes))


def _notes(first: int, last: int, total: int | None) -> list[str]:
    if first == 1 and last == total:
        return []
    of = f"of {total:,}" if total is not None else "of a text that goes on"
    rest = f" Go on with offset={last + 1}." if last != total else ""
    where = f"Line {first:,}" if first == last else f"Lines {first:,}-{last:,}"
    return [f"{where} {of}.{rest}"]


def split_lines(text: str) -> list[str]:
    """Split at LF and CRLF alone; a line end at the end begins no line."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def beyond_end(name: str, first: int, total: int) -> ToolFailure:
    return ToolFailure(
        f"{name} has {size_text(total, 'line')}; offset {first:,} lies beyond its end"
    )


async def scan(read: Read, encoding: str, name: str, first: int, lines_max: int) -> Page:
    """Find a page in a text that is too large to be held; raises `ToolFailure` beyond the end."""
    start = await _find_line(read, name, first)
    bound = limits.READ_BYTES_MAX * 2
    data = await read(start, bound)
    ended = len(data) < bound
    lines = split_lines(codecs.getincrementaldecoder(encoding)("replace").decode(data, ended))
    if not lines:
        raise beyond_end(name, first, first - 1)
    if ended:
        return page_of(lines, first, lines_max, total=first + len(lines) - 1)
    # The last line goes on; a page that stops before it is exact.
    return page_of(lines[:-1] or lines, first, lines_max, total=None)


async def _find_line(read: Read, name: str, first: int) -> int:
    """Return the byte at which a line begins."""
    position, number, last = 0, 1, b""
    while number < first:
        if position >= limits.READ_SCAN_BYTES_MAX:
            raise ToolFailure(
                f"line {first:,} of {name} lies after its first "
                f"{size_text(position, 'byte')}, which hold {size_text(number - 1, 'line')}; "
                "use search, or a command such as sed -n"
            )
        chunk = await read(position, limits.READ_CHUNK_BYTES)
        ends = chunk.count(b"\n")
        if number + ends >= first:
            at = -1
            for _ in range(first - number):
                at = chunk.index(b"\n", at + 1)
            return position + at + 1
        position, number, last = position + len(chunk), number + ends, chunk[-1:] or last
        if len(chunk) < limits.READ_CHUNK_BYTES:
            raise beyond_end(name, first, number - 1 if last == b"\n" else number)
    return 0
