"""Where a text that was not found nearly is: one hint that lets the next try succeed."""

from __future__ import annotations

from collections import Counter

from vaala.tools import limits
from vaala.tools.text import clean, size_text

_RATIO_MIN = 0.6


def nearest(text: str, old: str) -> str:
    """Return a hint for the model; both texts have LF line ends. Bounded work, no I/O."""
    lines = text.split("\n")
    if len(lines) > limits.NEAREST_LINES_MAX:
        return f"The file has {size_text(len(lines), 'line')}: read the part again."
    wanted = old.strip("\n").split("\n")
    packed = [_packed(line) for line in lines]
    if (at := _find_run(packed, [_packed(line) for line in wanted])) is not None:
        same = _named(lines, at, at + len(wanted))
        return f"It differs only in white space (spaces, tabs, blank ends) from {same}"
    at = _most_like(packed, [_packed(line) for line in wanted])
    if at is None:
        return "Nothing in the file is like it: read the file again."
    return f"The nearest place is {_named(lines, at, at + len(wanted))}"


def _packed(line: str) -> str:
    return " ".join(line[: limits.NEAREST_LINE_CHARS_MAX].split())


def _find_run(lines: list[str], wanted: list[str]) -> int | None:
    last = len(lines) - len(wanted)
    for at in range(last + 1):
        if lines[at] == wanted[0] and lines[at : at + len(wanted)] == wanted:
            return at if any(wanted) else None
    return None


def _most_like(lines: list[str], wanted: list[str]) -> int | None:
    """Return where the window begins that is most like ``wanted``.

    Windows are ranked by the words that they share with it; only the best few are compared.
    """
    from difflib import SequenceMatcher  # here: most runs look for nothing in vain

    words = Counter(word for line in wanted for word in line.split())
    shared = [sum(min(words[word], 3) for word in set(line.split())) for line in lines]
    size = len(wanted)
    total = sum(shared[:size])
    ranked: list[tuple[int, int]] = []
    for at in range(max(1, len(lines) - size + 1)):
        ranked.append((total, -at))
        total += (shared[at + size] if at + size < len(lines) else 0) - shared[at]
    ranked.sort(reverse=True)
    target = "\n".join(wanted)[: limits.NEAREST_LINE_CHARS_MAX]
    best, best_at = 0.0, None
    for _, negative in ranked[: limits.NEAREST_CANDIDATES_MAX]:
        at = -negative
        window = "\n".join(lines[at : at + size])[: limits.NEAREST_LINE_CHARS_MAX]
        ratio = SequenceMatcher(None, window, target, autojunk=False).ratio()
        if ratio > best:
            best, best_at = ratio, at
    return best_at if best >= _RATIO_MIN else None


def _named(lines: list[str], start: int, stop: int) -> str:
    stop = min(stop, start + limits.NEAREST_SHOWN_LINES_MAX, len(lines))
    shown = "\n".join(line[: limits.NEAREST_LINE_CHARS_MAX] for line in lines[start:stop])
    where = f"line {start + 1}" if stop - start == 1 else f"lines {start + 1}-{stop}"
    return f"{where}, which the file has as:\n{clean(shown)}"
