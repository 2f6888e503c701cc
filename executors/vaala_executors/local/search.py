"""Searching on this machine: ask a process of our own (`searching`), read what it says."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from vaala_executors.errors import BadPattern, FileFailed
from vaala_executors.limits import (
    SEARCH_BYTES_MAX,
    SEARCH_FILE_BYTES_MAX,
    SEARCH_FILES_MAX,
    SEARCH_MATCHES_MAX,
    SEARCH_MEMORY_BYTES_MAX,
    SEARCH_RESULT_BYTES_MAX,
    SEARCH_SECONDS,
)
from vaala_executors.local.searching import query as kinds
from vaala_executors.local.searching.query import Limits, Query
from vaala_executors.local.starter import Starter
from vaala_executors.process import Command, Exit, Process
from vaala_executors.workspace import Match, SearchQuery, SearchResult

BOOTSTRAP = "import sys; sys.path.extend(sys.argv[1:3]); from searching.job import main; main()"
LIMITS = Limits(
    seconds=SEARCH_SECONDS,
    files=SEARCH_FILES_MAX,
    bytes=SEARCH_BYTES_MAX,
    file_bytes=SEARCH_FILE_BYTES_MAX,
    matches=SEARCH_MATCHES_MAX,
    memory_bytes=SEARCH_MEMORY_BYTES_MAX,
)
PATTERN_BYTES_MAX = 100_000
"""A single argument of a program may have 128 KiB on Linux."""


class Searcher:
    """Searches are bounded by ``limits``, in files, bytes, seconds and memory."""

    def __init__(
        self,
        starter: Starter,
        limits: Limits = LIMITS,
        *,
        result_bytes_max: int = SEARCH_RESULT_BYTES_MAX,
    ) -> None:
        self._starter = starter
        self._limits = limits
        self._result_bytes_max = result_bytes_max

    async def search(self, query: SearchQuery, root: str) -> SearchResult:
        """Search below ``root``, a real path; the matches have real paths.

        Raises `BadPattern`, and `FileFailed` when the search broke off for a reason of its own.
        Cancel: the searching process is ended.
        """
        if len((query.pattern or "") + (query.glob or "")) * 4 > PATTERN_BYTES_MAX:
            raise BadPattern(f"the pattern is longer than {PATTERN_BYTES_MAX // 4} characters")
        answers = _Answers(self._result_bytes_max)
        async with self._starter.start(self._command(query, root), "/") as process:
            await answers.read(process)
            # Not `wait`: one whose answer is too large would write on, to nobody.
            return answers.result(await process.end())

    def _command(self, query: SearchQuery, root: str) -> Command:
        matches = min(query.matches_max, self._limits.matches)
        asked = Query(
            root=root,
            pattern=query.pattern,
            glob=query.glob,
            ignore_case=query.ignore_case,
            literal=query.literal,
            limits=self._limits._replace(matches=matches),
        )
        folders = (str(Path(__file__).parent), _folder_of("pathspec"))
        return Command(argv=(sys.executable, "-I", "-S", "-c", BOOTSTRAP, *folders, asked.encode()))


class _Answers(Struct):
    """What the process has said so far; the last line may be torn when it was killed."""

    _bytes_max: int
    _bytes: bytearray = field(default_factory=bytearray)
    _full: bool = False

    async def read(self, process: Process) -> None:
        async for chunk in process.output():
            self._bytes += chunk
            if len(self._bytes) > self._bytes_max:
                self._full = True
                return

    def result(self, ended: Exit) -> SearchResult:
        matches: list[Match] = []
        notes: list[str] = []
        truncated = done = False
        for line in bytes(self._bytes).split(b"\n")[:-1]:
            kind, *rest = _parse(line)
            if kind == kinds.MATCH:
                matches.append(Match(*rest))
            elif kind == kinds.NOTE:
                notes.append(rest[0])
            elif kind == kinds.BAD_PATTERN:
                raise BadPattern(f"the pattern is not valid: {rest[0]}")
            truncated |= kind == kinds.TRUNCATED
            done |= kind == kinds.DONE
        if not done:
            truncated = True
            notes.append(self._why_broken_off(ended))
        return SearchResult(tuple(matches), truncated, "; ".join(notes))

    def _why_broken_off(self, ended: Exit) -> str:
        if self._full:
            return f"the answer was larger than {self._bytes_max} bytes"
        if ended.signal == signal.SIGALRM:
            return "the time was up and the search had to be killed: try a simpler pattern"
        last = bytes(self._bytes[-500:]).decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise FileFailed(f"the search broke off (exit {ended.code}, signal {ended.signal}): {last}")


def _parse(line: bytes) -> list[Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        return [""]  # a traceback; the search is not done, and its last line is told
    return answer if isinstance(answer, list) and answer else [""]


def _folder_of(package: str) -> str:
    """Return where a package is found, without the cost of importing it."""
    from importlib.util import find_spec  # here: most runs search nothing

    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return os.path.dirname(os.path.dirname(spec.origin))
