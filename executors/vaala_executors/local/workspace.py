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
from vaala_executors.local.resolver import Resolver, relative
from vaala_executors.local.search import Searcher
from vaala_executors.local.starter import Starter
from vaala_executors.process import Command, Process
from vaala_executors.workspace import (
    DirEntry,
    FileStat,
    Place,
    SearchQuery,
    SearchResult,
    WholeFile,
    Workspace,
)

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

    async def find(self, path: str) -> Place:
        def work() -> Place:
            place = self._resolver.resolve(path)
            return replace(place, stat=files.stat_if_there(place))

        return await self._look(work)

    async def read(self, path: str | Place, *, offset: int = 0, length: int | None = None) -> bytes:
        def work() -> bytes:
            return files.read_file(self._resolver.admit(path), offset, length, check_cancelled)

        return await self._look(work)

    async def read_whole(self, path: str | Place, bytes_max: int) -> WholeFile:
        def work() -> WholeFile:
            return files.read_whole(self._resolver.admit(path), bytes_max, check_cancelled)

        return await self._look(work)

    async def write(self, path: str | Place, data: bytes) -> FileStat:
        def work() -> FileStat:
            return replace_file(self._resolver.admit(path), data, check_cancelled)

        return await self._change(work)

    async def list(self, path: str | Place) -> Sequence[DirEntry]:
        def work() -> Sequence[DirEntry]:
            return files.list_directory(self._resolver.admit(path), check_cancelled)

        return await self._look(work)

    async def remove(self, path: str | Place) -> None:
        await self._change(lambda: files.remove(self._resolver.admit(path, follow=False)))

    async def rename(self, source: str | Place, target: str | Place) -> None:
        def work() -> None:
            origin, goal = (self._resolver.admit(path, follow=False) for path in (source, target))
            files.rename(origin, goal)

        await self._change(work)

    async def search(self, query: SearchQuery) -> SearchResult:
        def work() -> tuple[str, str]:
            place = self._resolver.admit(query.path)
            files.stat_file(place)
            return place.real_path, self._resolver.base()

        real_path, base = await self._look(work)
        result = await self._machine.searcher.search(query, real_path)
        matches = tuple(replace(match, path=relative(match.path, base)) for match in result.matches)
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
