"""The bounds of a search on this machine, and that it never stops the runtime."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from vaala_executors import FileFailed, SearchQuery, SearchResult
from vaala_executors.local.marker import marker_of
from vaala_executors.local.search import LIMITS, Searcher
from vaala_executors.local.searching.query import Limits
from vaala_executors.local.starter import Starter


@pytest.fixture
async def starter() -> AsyncIterator[Starter]:
    opened = Starter(os.environ, tuple, ("/bin/sh", "-c"), trio.CapacityLimiter(2))
    yield opened
    await opened.aclose()


async def search(
    starter: Starter, tree: Path, query: SearchQuery, limits: Limits = LIMITS
) -> SearchResult:
    with trio.fail_after(30):
        return await Searcher(starter, limits).search(query, str(tree))


CATASTROPHE = "x" * 60 + "\n"


async def test_pattern_without_end_is_stopped_and_what_was_found_counts(
    starter: Starter, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("xxy\n")
    (tmp_path / "b").write_text(CATASTROPHE)
    result = await search(starter, tmp_path, SearchQuery("^(x+x+)+y"), LIMITS._replace(seconds=1))
    assert [match.path for match in result.matches] == [str(tmp_path / "a")]
    assert result.truncated
    assert result.note == f"the time of 1 s was up in {str(tmp_path / 'b')!r}"


async def test_an_answer_that_is_too_large_ends_the_search_at_once(
    starter: Starter, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("x" * 400 + "\n")
    (tmp_path / "b").write_text(("x" * 400 + "\n") * 5000)
    searcher = Searcher(starter, LIMITS._replace(seconds=100), result_bytes_max=1000)
    with trio.fail_after(30):
        result = await searcher.search(SearchQuery("x", matches_max=5001), str(tmp_path))
    assert result.matches[0].path == str(tmp_path / "a")
    assert result.truncated
    assert result.note == "the answer was larger than 1000 bytes"


async def test_pattern_without_end_stops_nobody_else(starter: Starter, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(CATASTROPHE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(search, starter, tmp_path, SearchQuery("(x+x+)+y"))
        with trio.fail_after(20):
            while not searching(starter):  # noqa: ASYNC110 # no event tells of its start
                await trio.sleep(0.01)
            for _ in range(20):
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert not searching(starter)


def searching(starter: Starter) -> list[int]:
    """Return the processes that search for this starter."""
    marks = {int(name): marker_of(int(name)) for name in os.listdir("/proc") if name.isdecimal()}
    return [pid for pid, mark in marks.items() if mark and mark.startswith(starter._runtime)]


async def test_ignore_file_without_end_is_killed(starter: Starter, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*a" * 40 + "b\n")
    (tmp_path / ("a" * 200)).write_text("x")
    result = await search(starter, tmp_path, SearchQuery("x"), LIMITS._replace(seconds=1))
    assert result.truncated
    assert "time" in result.note


async def test_bytes(starter: Starter, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("x\n" * 1000 + "end\n")
    some = await search(starter, tmp_path, SearchQuery("end"), LIMITS._replace(bytes=3000))
    assert [match.path for match in some.matches] == [str(tmp_path / "a")]
    assert some.truncated
    assert "only the first 3000 bytes were searched" in some.note
    cut = await search(starter, tmp_path, SearchQuery("end"), LIMITS._replace(file_bytes=1000))
    assert cut.matches == ()
    assert cut.note == "of 3 large files only the first 1000 bytes were searched"
    assert cut.truncated


async def test_files(starter: Starter, tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}").write_text("x")
    result = await search(starter, tmp_path, SearchQuery("x"), LIMITS._replace(files=5))
    assert len(result.matches) == 5
    assert result.note == "only the first 5 files were looked at"
    assert result.truncated


async def test_huge_binary_file_costs_nothing(starter: Starter, tmp_path: Path) -> None:
    with open(tmp_path / "model.bin", "wb") as file:  # noqa: ASYNC230 - sparse, so instant
        file.truncate(5 << 30)  # E6-2
    (tmp_path / "z").write_text("needle")
    result = await search(starter, tmp_path, SearchQuery("needle"))
    assert [match.path for match in result.matches] == [str(tmp_path / "z")]
    assert not result.truncated


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything")
async def test_unreadable_files_are_counted(starter: Starter, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0)
    result = await search(starter, tmp_path, SearchQuery("x"))
    assert result.note.startswith("1 could not be read, such as")


async def test_search_that_breaks_off_says_why(starter: Starter, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("y" * 900_000)
    limits = LIMITS._replace(memory_bytes=1 << 20)
    # What is left to say without memory differs between versions of Python.
    with pytest.raises(FileFailed, match=r"the search broke off \(exit 1, signal None\): \w"):
        await search(starter, tmp_path, SearchQuery("x"), limits)
