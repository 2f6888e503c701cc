"""Clean text: what may go to a model, a log line and a terminal alike.

Control characters, lone surrogates and marks that reorder text on a screen are made visible, one
character for one, so that nothing is hidden and places stay where they were.
"""

from __future__ import annotations

import re

from msgspec import Struct

_UNCLEAN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_BREAKS = re.compile(r"[\t\n\u2028\u2029]")


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # control pictures: NUL is shown as U+2400
    return "\u2421" if code == 0x7F else "\ufffd"


def is_clean(text: str) -> bool:
    return _UNCLEAN.search(text) is None


def clean(text: str) -> str:
    """Return ``text`` with everything but tab and newline that is not plain text made visible."""
    return _UNCLEAN.sub(_visible, text)


def clean_line(text: str, chars_max: int) -> str:
    """Return ``text`` clean, on one line and at most ``chars_max`` characters long."""
    line = clean(_BREAKS.sub(" ", text[: chars_max + 1]))
    return line if len(text) <= chars_max else line[: chars_max - 1] + "…"


def size_text(count: int, unit: str) -> str:
    """Return an exact number with its unit: "1 byte", "12,345 lines"."""
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"


class Cut(Struct, frozen=True):
    """The head of a text, and what was left out of it."""

    text: str
    lines: int
    """Whole lines in ``text``."""
    omitted_lines: int
    omitted_bytes: int


def cut_lines(lines: list[str], bytes_max: int) -> Cut:
    """Join as many whole lines as fit into ``bytes_max`` bytes of UTF-8, newlines included."""
    total = 0
    for shown, line in enumerate(lines):
        size = len(line.encode("utf-8", "replace")) + 1
        if total + size > bytes_max:
            rest = sum(len(later.encode("utf-8", "replace")) + 1 for later in lines[shown:])
            return Cut("\n".join(lines[:shown]), shown, len(lines) - shown, rest)
        total += size
    return Cut("\n".join(lines), len(lines), 0, 0)


def head_and_tail(text: str, bytes_max: int) -> tuple[str, int, str]:
    """Return head, number of omitted bytes and tail, on line borders where there are some.

    With nothing omitted the head is the whole text and the tail is empty.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text, 0, ""
    half = bytes_max // 2
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - half :].decode("utf-8", "ignore")
    # A border near the cut is taken; in one endless line there is none, and the cut stays.
    if (border := head.rfind("\n")) >= len(head) // 2:
        head = head[: border + 1]
    if 0 <= (border := tail.find("\n")) < len(tail) // 2:
        tail = tail[border + 1 :]
    kept = len(head.encode("utf-8", "replace")) + len(tail.encode("utf-8", "replace"))
    return head, len(data) - kept, tail
