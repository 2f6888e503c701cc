"""Find a text in a file and replace it, touching nothing else.

Places are found and counted in one space: the text with LF line ends. What is replaced is the part
in which old and new differ, so the lines around it keep their own line ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from vaala.tools import limits
from vaala.tools.line_ends import LfView, to_lf


class Replacement(Struct, frozen=True):
    """``old`` and ``new`` with LF; ``at`` are the places of ``old``, in order."""

    old: str
    new: str
    at: tuple[int, ...]


def find(view: LfView, old_text: str, new_text: str) -> Replacement:
    """Find the places of ``old_text``, overlapping ones too, up to one more than the limit."""
    old, new = to_lf(old_text), to_lf(new_text)
    at = tuple(islice(_places(view.text, old), limits.EDIT_PLACES_MAX + 1))
    if not at and old.endswith("\n") and len(old) > 1:
        # The last line of a file without a final newline, which stays without one.
        last = old[:-1]
        if view.text.endswith(last):
            return Replacement(last, new.removesuffix("\n"), (len(view.text) - len(last),))
    return Replacement(old, new, at)


def _places(text: str, old: str) -> Iterator[int]:
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + 1)


def apply(view: LfView, change: Replacement) -> str:
    """Return the original with the change made at each of its places that does not overlap."""
    head = _common_head(change.old, change.new)
    tail = _common_tail(change.old[head:], change.new[head:])
    old_core = change.old[head : len(change.old) - tail]
    new_core = change.new[head : len(change.new) - tail]
    parts: list[str] = []
    done, free = 0, 0
    for at in change.at:
        if at < free:
            continue
        free = at + len(change.old)
        start = at + head
        parts.append(view.original[done : view.place(start)])
        parts.append(_with_ends(view, start, old_core, new_core))
        done = view.place(start + len(old_core))
    parts.append(view.original[done:])
    return "".join(parts)


def _with_ends(view: LfView, start: int, old: str, new: str) -> str:
    """Return ``new`` with the line ends of the lines that it replaces."""
    if "\n" not in new:
        return new
    ends = [view.end_at(start + at) for at in _places(old, "\n")]
    near = ends[-1] if ends else view.end_near(start)
    lines = new.split("\n")
    ends += [near] * (len(lines) - 1 - len(ends))
    return "".join(line + end for line, end in zip(lines[:-1], ends, strict=False)) + lines[-1]


def _common_head(one: str, two: str) -> int:
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_tail(one: str, two: str) -> int:
    return _common_head(one[::-1], two[::-1])
