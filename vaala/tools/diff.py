"""Unified diffs of one change, bounded in work and in size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vaala.tools import limits
from vaala.tools.line_ends import to_lf
from vaala.tools.text import clean, cut_lines, size_text

_CONTEXT_LINES = 3
_NO_NEWLINE = "\\ No newline at end of file"


def unified_diff(path: str, old: str | None, new: str) -> str:
    """Return the change of a file; ``old`` is None for a new one. Line ends are not compared.

    Cut on a line border at the limit, with the number of lines left out.
    """
    before, after = _lines(old or ""), _lines(new)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    source = "/dev/null" if old is None else f"a/{path.lstrip('/')}"
    lines = [f"--- {source}", f"+++ b/{path.lstrip('/')}"]
    for group in _groups(before, after, head, tail):
        lines += _hunk(before, after, group)
    cut = cut_lines(
        [part for line in lines for part in clean(line).split("\n")], limits.DIFF_BYTES_MAX
    )
    if not cut.omitted_lines:
        return cut.text
    return f"{cut.text}\n({size_text(cut.omitted_lines, 'more line')} of the diff left out)"


def _lines(text: str) -> list[str]:
    """Return the lines; one without a newline at the end carries the mark of diff(1)."""
    lines = to_lf(text).split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n{_NO_NEWLINE}"] if last else lines


_Group = list[tuple[str, int, int, int, int]]


def _groups(before: Sequence[str], after: Sequence[str], head: int, tail: int) -> Iterator[_Group]:
    """Yield the opcodes of each hunk; only what lies between equal head and tail is compared."""
    start, trail = max(0, head - _CONTEXT_LINES), min(tail, _CONTEXT_LINES)
    left = before[start : len(before) - tail + trail]
    right = after[start : len(after) - tail + trail]
    groups: Iterable[_Group]
    if max(len(left), len(right)) > limits.DIFF_COMPARED_LINES_MAX:
        lead = head - start
        left_end, right_end = len(left) - trail, len(right) - trail
        groups = [
            [
                ("equal", 0, lead, 0, lead),
                ("replace", lead, left_end, lead, right_end),
                ("equal", left_end, len(left), right_end, len(right)),
            ]
        ]
    else:
        from difflib import SequenceMatcher  # here: most runs change no file

        matcher = SequenceMatcher(None, left, right, autojunk=False)
        groups = (list(group) for group in matcher.get_grouped_opcodes(_CONTEXT_LINES))
    for group in groups:
        yield [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]


def _hunk(before: Sequence[str], after: Sequence[str], group: _Group) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@"
    for tag, a, b, c, d in group:
        if tag == "equal":
            yield from (f" {_short(line)}" for line in before[a:b])
        else:
            yield from (f"-{_short(line)}" for line in before[a:b])
            yield from (f"+{_short(line)}" for line in after[c:d])


def _span(start: int, stop: int) -> str:
    count = stop - start
    return f"{start + 1 if count else start},{count}"


def _short(line: str) -> str:
    text, mark, rest = line.partition(f"\n{_NO_NEWLINE}")
    if len(text) > limits.DIFF_LINE_CHARS_MAX:
        text = f"{text[: limits.DIFF_LINE_CHARS_MAX]}… ({len(text):,} characters)"
    return text + mark + rest
