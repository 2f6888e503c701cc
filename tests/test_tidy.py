"""How the tree must look. There are no exemptions: a limit is met by a better cut."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "vaala",
    "protocol/vaala_protocol",
    "storage/vaala_storage",
    "executors/vaala_executors",
)
FOLDERS = (*PACKAGES, "tests", "bench")
TEXT_SUFFIXES = frozenset({".py", ".md", ".toml", ".yaml", ".sh"})
DATA_FOLDERS = frozenset({"vaala/models/scripted/sample"})
"""Python files that are data of a package, no part of it."""
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
LINE_CHARACTERS_MAX = 100
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _files() -> list[Path]:
    files = [path for path in (*ROOT.iterdir(), *(ROOT / ".ci").iterdir()) if path.is_file()]
    for folder in FOLDERS:
        files += [
            path for path in (ROOT / folder).rglob("*")
            if path.suffix in TEXT_SUFFIXES and path.is_file() and "__pycache__" not in path.parts
        ]  # fmt: skip
    return sorted(set(files))


def _python(*folders: str) -> list[Path]:
    return [
        path for path in _files()
        if path.suffix == ".py" and any(path.is_relative_to(ROOT / folder) for folder in folders)
    ]  # fmt: skip


@cache
def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def _calls(path: Path, name: str) -> Iterator[ast.Call]:
    """Yield the calls of ``name`` ("print", "time.sleep") in a file."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield node


def test_the_walk_sees_the_tree() -> None:
    """A check over no files would always hold."""
    assert ROOT / "pyproject.toml" in _files()
    assert Path(__file__).resolve() in _python("tests")
    assert all(_python(package) for package in PACKAGES)


def test_no_file_is_too_long() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {len(_lines(path))} lines"
        for path in _files()
        if len(_lines(path)) > FILE_LINES_MAX + 1  # the split adds one after the last newline
    ] == []


def test_no_line_is_too_long() -> None:
    assert [
        _place(path, number)
        for path in _files()
        for number, line in enumerate(_lines(path), 1)
        if len(line) > LINE_CHARACTERS_MAX
    ] == []


def test_no_function_is_too_long() -> None:
    assert [
        f"{_place(path, node.lineno)} {node.name}"
        for path in _python(*FOLDERS, ".ci")
        for node in ast.walk(_tree(path))
        if isinstance(node, Function)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX
    ] == []


def test_nothing_is_left_for_later() -> None:
    assert [
        _place(path, number)
        for path in _files()
        for number, line in enumerate(_lines(path), 1)
        if UNFINISHED.search(line)
    ] == []


def test_product_code_knows_one_event_loop() -> None:
    found: list[str] = []
    for path in _python(*PACKAGES):
        for node in ast.walk(_tree(path)):
            match node:
                case ast.Import(names=names):
                    modules = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module)):
                    modules = [module]
                case _:
                    continue
            if any(module.split(".")[0] == "asyncio" for module in modules):
                found.append(_place(path, node.lineno))
    assert found == []


def test_only_the_command_line_prints() -> None:
    speaking = ROOT / "vaala" / "cli"
    assert [
        _place(path, call.lineno)
        for path in _python(*PACKAGES, "tests")
        if not path.is_relative_to(speaking)
        for call in _calls(path, "print")
    ] == []


def test_no_test_sleeps_for_real() -> None:
    assert [
        _place(path, call.lineno)
        for path in _python("tests")
        for call in (*_calls(path, "time.sleep"), *_calls(path, "sleep"))
    ] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_folder_of_a_package_is_a_package(package: str) -> None:
    folders = {path.parent for path in _python(package)}
    assert [
        str(folder.relative_to(ROOT))
        for folder in sorted(folders)
        if not (folder / "__init__.py").is_file()
        and str(folder.relative_to(ROOT)) not in DATA_FOLDERS
    ] == []


@pytest.mark.parametrize("folder", ["protocol", "storage", "executors", "tests"])
def test_a_source_root_is_no_package(folder: str) -> None:
    """A second way to import a module would make a second module object of it."""
    assert not (ROOT / folder / "__init__.py").exists()


def test_no_two_test_files_have_the_same_name() -> None:
    names = [path.name for path in _python("tests") if path.name != "conftest.py"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
