"""Unified diffs: what patch(1) would take, with bounded work and size."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from vaala.tools import limits
from vaala.tools.diff import unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=40)


@given(LINES, LINES)
def test_it_is_a_unified_diff(old: list[str], new: list[str]) -> None:
    """The same hunks as difflib makes from the whole, or at least a diff that leads there."""
    before, after = [f"{line}\n" for line in old], [f"{line}\n" for line in new]
    made = unified_diff("f", "".join(before), "".join(after)).split("\n")
    assert made[:2] == ["--- a/f", "+++ b/f"]
    assert _applied(before, made[2:]) == after


def _applied(before: list[str], diff: list[str]) -> list[str]:
    result: list[str] = []
    at = 0
    for line in diff:
        if line.startswith("@@"):
            start, count = map(int, line.split()[1][1:].split(","))
            start = start - 1 if count else start
            result += before[at:start]
            at = start
        elif line[0] in " -":
            assert before[at] == line[1:] + "\n"
            at += 1
        if line[0] in " +":
            result.append(line[1:] + "\n")
    return result + before[at:]


def test_equal_texts_have_no_hunks() -> None:
    assert unified_diff("f", "a\nb\n", "a\r\nb\r\n") == "--- a/f\n+++ b/f"


def test_a_missing_newline_is_marked() -> None:
    expected = list(
        difflib.unified_diff(["a\n", "b"], ["a\n", "b\n"], "a/f", "b/f", n=3, lineterm="\n")
    )
    assert expected[-2:] == ["-b", "+b\n"]
    assert unified_diff("f", "a\nb", "a\nb\n").split("\n")[2:] == [
        "@@ -1,2 +1,2 @@", " a", "-b", "\\ No newline at end of file", "+b",
    ]  # fmt: skip


def test_a_large_change_is_removed_and_added() -> None:
    size = limits.DIFF_COMPARED_LINES_MAX + 1
    old = "same\n" + "".join(f"old {n}\n" for n in range(size)) + "end\n"
    new = "same\n" + "".join(f"new {n}\n" for n in range(size)) + "end\n"
    lines = unified_diff("f", old, new).split("\n")
    assert lines[2] == f"@@ -1,{size + 2} +1,{size + 2} @@"
    assert lines[3:5] == [" same", "-old 0"]


def test_long_lines_are_cut() -> None:
    diff = unified_diff("f", None, "x" * 100_000 + "\n")
    assert diff.endswith(f"+{'x' * limits.DIFF_LINE_CHARS_MAX}… (100,000 characters)")
