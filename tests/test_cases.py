"""`tests/cases/` tells for each case id where it is tested, or why it is not."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAPS = [
    ROOT / "tests" / "cases" / f"{name}.md"
    for name in ("turns", "commands", "storage", "server", "front_ends")
]

COUNTS = {
    "A1": 5, "A2": 5, "A3": 5, "A4": 4, "A5": 3, "A6": 4, "A7": 4,
    "D1": 4, "D2": 3, "D3": 5, "D4": 5, "D5": 3,
    "G1": 5, "G2": 5, "G3": 4, "G4": 4, "G5": 4,
    "H1": 5, "H2": 3, "H3": 7, "H4": 5, "H5": 5, "H6": 4, "H7": 5, "H8": 5, "H9": 4, "H10": 3,
    "I3": 4, "J4": 4, "J5": 3,
}  # fmt: skip
"""How many cases each kind of failure has."""

TESTS_MAX = 4

HEAD = re.compile(r"- ([A-Z]\d+-\d+): \S.*")
FILE = re.compile(r"  - (tests/(?:\w+/)*test_\w+\.py)")
TEST = re.compile(r"    - (test_\w+)")
REASON = re.compile(r"  - later: \S.*")


@dataclass
class Entry:
    case: str
    tests: list[tuple[str, str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def _entries() -> list[Entry]:
    """Read the maps: a case, below it reasons, and files with the names of their tests."""
    entries: list[Entry] = []
    file = ""
    for line in "\n".join(path.read_text("utf-8") for path in MAPS).split("\n"):
        if found := HEAD.fullmatch(line):
            entries.append(Entry(found[1]))
            file = ""
        elif found := FILE.fullmatch(line):
            file = found[1]
        elif file and (found := TEST.fullmatch(line)):
            entries[-1].tests.append((file, found[1]))
        elif REASON.fullmatch(line):
            entries[-1].reasons.append(line)
        else:
            assert not line.lstrip().startswith("- "), (
                f"neither case, file, test nor reason: {line}"
            )
    return entries


@cache
def _functions(file: str) -> frozenset[str]:
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_each_case_is_there_once() -> None:
    wanted = [f"{kind}-{n}" for kind, count in COUNTS.items() for n in range(1, count + 1)]
    assert [entry.case for entry in _entries()] == wanted


def test_each_case_has_a_test_or_a_reason() -> None:
    assert [e.case for e in _entries() if not e.tests and not e.reasons] == []


def test_a_case_names_a_few_tests_each_once() -> None:
    """With all that touch a case, nobody would see the one that shows it."""
    assert [
        e.case for e in _entries() if len(e.tests) > TESTS_MAX or len(e.tests) != len(set(e.tests))
    ] == []


def test_each_named_test_exists() -> None:
    assert [
        f"{entry.case}: {file}::{name}"
        for entry in _entries()
        for file, name in entry.tests
        if name not in _functions(file)
    ] == []
