"""`LocalWorkspace`: a directory of this machine, its files in threads, its commands supervised."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import trio
from msgspec import Struct
from msgspec.structs import replace

from vaala_executors.local import files
from vaala_executors.local.replace import replace_file
from vaala_executors.local.resolver import Resolver
from vaala_executors.local.search import Searcher
from vaala_executors.local.starter import Starter
from vaala_executors.process import Command, Process
from vaala_executors.workspace import DirEntry, FileStat, SearchQuery, SearchResult, Workspace

Result = TypeVar("Result")
check_cancelled = trio.from_thread.check_cancelled


class Machine(Struct, frozen=True):
    """What all workspaces of one executor share."""

    name: str
    starter: Starter
    limiter: trio.CapacityLimiter
    searcher: Searcher


class LocalWorkspace(Workspace):
    """Reading is abandoned on cancel, since a dead network disk may hold it for ever: its thread
    ends by itself. Changes are waited for, so that none happens after the caller went on.
    """

    def __init__(self, machine: Machine, directory: str, additional: Sequence[str]) -> None:
        self._machine = machine
        self._directory = os.path.abspath(directory)
        self._resolver = Resolver(self._directory, tuple(map(os.path.abspath, additional)))

    @property
    def executor(self) -> str:
        return self._machine.name

    @property
    def directory(self) -> str:
        return self._directory

    async def resolve(self, path: str) -> tuple[str, bool]:
        place = await self._look(lambda: self._resolver.resolve(path))
        return place.real, place.root is not None

    async def read(
        self, path: str, *, offset: int = 0, length: int | None = None, anywhere: bool = False
    ) -> bytes:
        def work() -> bytes:
            place = self._resolver.confine(self._resolver.resolve(path), anywhere=anywhere)
            return files.read_file(place, offset, length, check_cancelled)

        return await self._look(work)

    async def write(self, path: str, data: bytes, *, anywhere: bool = False) -> FileStat:
        def work() -> FileStat:
            place = self._resolver.confine(self._resolver.resolve(path), anywhere=anywhere)
            is_link = self._resolver.is_link(path)
            return replace_file(place, data, is_link=is_link, check_cancelled=check_cancelled)

        return await self._change(work)

    async def stat(self, path: str, *, anywhere: bool = False) -> FileStat:
        def work() -> FileStat:
            place = self._resolver.confine(self._resolver.resolve(path), anywhere=anywhere)
            return files.stat_file(place, is_link=self._resolver.is_link(path))

        return await self._look(work)

    async def list(self, path: str, *, anywhere: bool = False) -> Sequence[DirEntry]:
        def work() -> Sequence[DirEntry]:
            place = self._resolver.confine(self._resolver.resolve(path), anywhere=anywhere)
            return files.list_directory(place, check_cancelled)

        return await self._look(work)

    async def remove(self, path: str, *, anywhere: bool = False) -> None:
        """Remove a file, an empty directory, or a link and not what it names."""

        def work() -> None:
            files.remove(
                self._resolver.confine(self._resolver.resolve_name(path), anywhere=anywhere)
            )

        await self._change(work)

    async def rename(self, source: str, target: str, *, anywhere: bool = False) -> None:
        """Rename a file, directory or link; makes the target's parents, replaces nothing."""

        def work() -> None:
            origin, goal = (
                self._resolver.confine(self._resolver.resolve_name(path), anywhere=anywhere)
                for path in (source, target)
            )
            files.rename(origin, goal)

        await self._change(work)

    async def search(self, query: SearchQuery, *, anywhere: bool = False) -> SearchResult:
        def work() -> str:
            place = self._resolver.confine(self._resolver.resolve(query.path), anywhere=anywhere)
            files.stat_file(place, is_link=False)
            return place.real

        real = await self._look(work)
        result = await self._machine.searcher.search(query, real)
        matches = tuple(
            replace(match, path=self._resolver.relative(match.path)) for match in result.matches
        )
        return replace(result, matches=matches)

    @asynccontextmanager
    async def start(self, command: Command) -> AsyncGenerator[Process]:
        directory = self._directory
        if command.cwd != ".":
            directory = os.path.join(directory, command.cwd)
        async with self._machine.starter.start(command, directory) as process:
            yield process

    async def _look(self, work: Callable[[], Result]) -> Result:
        limiter = self._machine.limiter
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)

    async def _change(self, work: Callable[[], Result]) -> Result:
        return await trio.to_thread.run_sync(work, limiter=self._machine.limiter)
