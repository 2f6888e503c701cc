"""Searching on any executor: what is found, what is skipped, what is said about the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from vaala_executors import (
    BadPattern,
    Executor,
    FileMissing,
    OutsideWorkspace,
    SearchQuery,
    SearchResult,
    Workspace,
)

TREE = {
    "README.md": "needle in a haystack\nnothing\n",
    "src/main.py": "import needle\n\ndef needle() -> None:\n    pass\n",
    "src/deep/er/x.ts": "const Needle = 1\r\n",
    "src/deep/y.tsx": "needle\n",
    ".github/ci.yml": "needle\n",
    ".gitignore": "*.log\n/build/\nnode_modules/\n!keep.log\n",
    ".git/config": "needle\n",
    ".git/info/exclude": "private.txt\n",
    "private.txt": "needle\n",
    "a.log": "needle\n",
    "keep.log": "needle\n",
    "build/out.txt": "needle\n",
    "src/build/in.txt": "needle\n",
    "node_modules/p/index.js": "needle\n",
    "src/.gitignore": "secret*\n!*.log\n",
    "src/b.log": "needle\n",
    "src/secret.txt": "needle\n",
    "数据.txt": "一针needle见血\n",
}
FOUND = [
    ".github/ci.yml", "README.md", "keep.log", "src/b.log", "src/build/in.txt", "src/deep/y.tsx",
    "src/main.py", "数据.txt",
]  # fmt: skip


@pytest.fixture
def tree(directory: Path) -> Path:
    for name, text in TREE.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return directory


async def search(workspace: Workspace, query: SearchQuery) -> SearchResult:
    with trio.fail_after(30):
        return await workspace.search(query)


def files(result: SearchResult) -> list[str]:
    return sorted({match.path for match in result.matches})


def triples(result: SearchResult) -> list[tuple[str, int | None, str]]:
    return [(match.path, match.line, match.text) for match in result.matches]


async def test_ignored_files_are_skipped(workspace: Workspace, tree: Path) -> None:
    result = await search(workspace, SearchQuery("needle"))
    assert files(result) == FOUND
    assert (result.truncated, result.note) == (False, "")


async def test_lines_and_their_numbers(workspace: Workspace, tree: Path) -> None:
    result = await search(workspace, SearchQuery("^(import|def) n"))
    assert triples(result) == [
        ("src/main.py", 1, "import needle"),
        ("src/main.py", 3, "def needle() -> None:"),
    ]
    ignoring = SearchQuery("^const needle = 1$", ignore_case=True)
    assert triples(await search(workspace, ignoring)) == [
        ("src/deep/er/x.ts", 1, "const Needle = 1")
    ]
    literal = SearchQuery("needle() -> N", literal=True)
    assert files(await search(workspace, literal)) == ["src/main.py"]
    assert triples(await search(workspace, SearchQuery("针.*见"))) == [
        ("数据.txt", 1, "一针needle见血")
    ]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["src/main.py"]),
        ("*.{ts,tsx}", ["src/deep/er/x.ts", "src/deep/y.tsx"]),
        ("src/**/*.{py,t{s,sx}}", ["src/deep/er/x.ts", "src/deep/y.tsx", "src/main.py"]),
        ("src/*.py", ["src/main.py"]),
        ("*/main.py", ["src/main.py"]),
        ("main", []),
        ("*.log", ["keep.log", "src/b.log"]),
        ("README*", ["README.md"]),
        ("*}.py", []),
    ],
)
async def test_files_by_name(workspace: Workspace, tree: Path, glob: str, found: list[str]) -> None:
    result = await search(workspace, SearchQuery(glob=glob))
    assert sorted(triples(result)) == [(path, None, "") for path in found]


async def test_glob_that_leaves_out(workspace: Workspace, tree: Path) -> None:
    result = await search(workspace, SearchQuery("needle", glob="!*.{log,md,yml}"))
    assert files(result) == ["src/build/in.txt", "src/deep/y.tsx", "src/main.py", "数据.txt"]


async def test_one_directory_or_file(workspace: Workspace, tree: Path) -> None:
    below = await search(workspace, SearchQuery("needle", path="src"))
    assert files(below) == [path for path in FOUND if path.startswith("src/")]
    one = await search(workspace, SearchQuery("needle", path="README.md"))
    assert triples(one) == [("README.md", 1, "needle in a haystack")]
    absolute = await search(workspace, SearchQuery(glob="main.py", path=str(tree / "src")))
    assert files(absolute) == ["src/main.py"]


async def test_what_is_named_is_searched_though_ignored(workspace: Workspace, tree: Path) -> None:
    for path in ("node_modules", "node_modules/p", "a.log", "build"):
        result = await search(workspace, SearchQuery("needle", path=path))
        assert len(result.matches) == 1, path


async def test_additional_root(executor: Executor, tree: Path, tmp_path: Path) -> None:
    os.mkdir(tmp_path / "more")
    async with executor.open_workspace(str(tmp_path / "more"), [str(tree)]) as workspace:
        result = await search(workspace, SearchQuery("haystack", path=str(tree)))
        assert files(result) == [str(tree / "README.md")]


async def test_outside_and_missing(workspace: Workspace, tree: Path) -> None:
    with pytest.raises(OutsideWorkspace):
        await search(workspace, SearchQuery("x", path=".."))
    with pytest.raises(FileMissing, match="nowhere"):
        await search(workspace, SearchQuery("x", path="nowhere"))


async def test_links_in_circles_and_out_of_the_tree(workspace: Workspace, tree: Path) -> None:
    os.symlink("..", tree / "src" / "loop")  # E6-3
    os.symlink("/etc", tree / "etc")
    os.symlink("README.md", tree / "again")
    assert files(await search(workspace, SearchQuery("needle"))) == FOUND


async def test_binary_and_special_files(workspace: Workspace, directory: Path) -> None:
    os.mkfifo(directory / "fifo")
    for name, data in (
        ("binary", b"needle\0needle\n"),
        ("latin", "n\xe9edle needle\n".encode("latin-1")),
        ("chinese", "数".encode() * 2731 + b"\nneedle\n"),  # D5-3: a sample of 8 KiB cuts it
    ):
        await workspace.write(name, data)
    assert files(await search(workspace, SearchQuery("needle"))) == ["chinese", "latin"]


async def test_long_lines(workspace: Workspace) -> None:
    await workspace.write("min.js", b"x" * 1_000_000 + b"needle" + b"y" * 1_500_000)  # E6-1
    result = await search(workspace, SearchQuery("needle"))
    (match,) = result.matches
    assert match.line == 1
    assert len(match.text) < 500
    assert "xneedley" in match.text
    assert match.text.startswith("…")
    assert match.text.endswith("…")


async def test_line_ends_are_newline_bytes_only(workspace: Workspace) -> None:
    await workspace.write("f", "a\u2028b\x0cc\x85d\ne\r\nneedle".encode())
    assert triples(await search(workspace, SearchQuery("needle"))) == [("f", 3, "needle")]


async def test_too_many_matches(workspace: Workspace) -> None:
    await workspace.write("f", b"x\n" * 1000)
    result = await search(workspace, SearchQuery("x", matches_max=10))
    assert len(result.matches) == 10
    assert (result.truncated, result.note) == (True, "only the first 10 matches are given")
    exact = await search(workspace, SearchQuery("x", matches_max=1000))
    assert (len(exact.matches), exact.truncated) == (1000, False)


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<a>x)(?P<a>y)", "[z-a]", "a{2,1}"])
async def test_patterns_that_are_none(workspace: Workspace, pattern: str) -> None:
    with pytest.raises(BadPattern, match="not valid"):
        await search(workspace, SearchQuery(pattern))


@pytest.mark.parametrize("pattern", ["x" * 50_000, "(a" * 20_000])
async def test_patterns_that_are_too_much(workspace: Workspace, pattern: str) -> None:
    with pytest.raises(BadPattern):
        await search(workspace, SearchQuery(pattern))


async def test_globs_that_are_too_much(workspace: Workspace) -> None:
    with pytest.raises(BadPattern, match="alternatives"):
        await search(workspace, SearchQuery(glob="{a,b}" * 12))


async def test_names_with_anything_in_them(workspace: Workspace) -> None:
    names = ["a\nb", "q\"u'ote", os.fsdecode(b"bad\xff"), "-n", "\ufeffx"]
    for name in names:
        await workspace.write(name, b"needle")
    assert files(await search(workspace, SearchQuery("needle"))) == sorted(names)
