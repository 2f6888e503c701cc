"""`tests/cases.md` tells for each case id where it is tested, or why it is not."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "tests" / "cases.md"

COUNTS = {
    "A1": 5, "A2": 5, "A3": 5, "A4": 4, "A5": 3, "A6": 4, "A7": 4,
    "D1": 4, "D2": 3, "D3": 5, "D4": 5, "D5": 3,
    "G1": 5, "G2": 5, "G3": 4, "G4": 4, "G5": 4,
}  # fmt: skip
"""How many cases each kind of failure has."""

HEAD = re.compile(r"- ([A-Z]\d+-\d+): \S.*")
TEST = re.compile(r"  - (tests/\S+\.py)::(test_\w+)")
REASON = re.compile(r"  - later: \S.*")


@dataclass(frozen=True)
class Entry:
    case: str
    tests: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]


def _entries() -> list[Entry]:
    """Read the map: a line for each case, below it its tests and reasons."""
    blocks: list[tuple[str, list[str]]] = []
    for line in MAP.read_text("utf-8").split("\n"):
        if head := HEAD.fullmatch(line):
            blocks.append((head[1], []))
        elif line.startswith("  - "):
            blocks[-1][1].append(line)
        else:
            assert not line.startswith("- "), f"not a case: {line}"
    return [_entry(case, lines) for case, lines in blocks]


def _entry(case: str, lines: list[str]) -> Entry:
    tests = [match for line in lines if (match := TEST.fullmatch(line))]
    reasons = [line for line in lines if REASON.fullmatch(line)]
    assert len(tests) + len(reasons) == len(lines), f"{case}: a line is neither test nor reason"
    return Entry(case, tuple((match[1], match[2]) for match in tests), tuple(reasons))


@cache
def _functions(file: str) -> frozenset[str]:
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_each_case_is_there_once() -> None:
    wanted = [f"{kind}-{n}" for kind, count in COUNTS.items() for n in range(1, count + 1)]
    assert [entry.case for entry in _entries()] == wanted


def test_each_case_has_a_test_or_a_reason() -> None:
    assert [e.case for e in _entries() if not e.tests and not e.reasons] == []


def test_each_named_test_exists() -> None:
    assert [
        f"{entry.case}: {file}::{name}"
        for entry in _entries()
        for file, name in entry.tests
        if name not in _functions(file)
    ] == []
