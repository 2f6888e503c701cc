"""A workspace without files whose processes do what the test says: for a fake clock."""

from __future__ import annotations

import math
import posixpath
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import trio

from vaala_executors import (
    Command,
    DirEntry,
    Exit,
    FileMissing,
    FileStat,
    Place,
    Process,
    SearchQuery,
    SearchResult,
    StartFailed,
    WholeFile,
    Workspace,
)


class ScriptedProcess(Process):
    def __init__(self, command: Command) -> None:
        self.command = command
        self.written: list[bytes] = []
        self.signals: list[str] = []
        self.sizes: list[tuple[int, int]] = []
        self.stdin_open = command.stdin
        self.reads_stdin = True
        self.breaks: Exception | None = None
        self.ended_by_us = False
        self._say, self._output = trio.open_memory_channel[bytes](math.inf)
        self._exit: Exit | None = None
        self._over = trio.Event()

    def say(self, data: bytes) -> None:
        self._say.send_nowait(data)

    def exits(self, code: int | None = 0, signal: int | None = None) -> None:
        if self._exit is None:
            self._exit = Exit(code, signal)
            self._over.set()
            self._say.close()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    @property
    def pid(self) -> int:
        return 1

    async def output(self) -> AsyncIterator[bytes]:
        async for data in self._output:
            if self.breaks is not None:
                raise self.breaks
            yield data

    async def write(self, data: bytes) -> None:
        if not self.stdin_open:
            raise BrokenPipeError("no input")
        if not self.reads_stdin:
            await trio.sleep_forever()
        self.written.append(data)
        await trio.lowlevel.checkpoint()

    async def close_stdin(self) -> None:
        self.stdin_open = False
        await trio.lowlevel.checkpoint()

    async def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))
        await trio.lowlevel.checkpoint()

    def send_signal(self, name: Literal["INT", "TERM", "KILL", "HUP"]) -> None:
        self.signals.append(name)

    async def wait(self) -> Exit:
        await self._over.wait()
        assert self._exit is not None
        return self._exit

    async def end(self) -> Exit:
        with trio.CancelScope(shield=True):
            if self._exit is None:
                await trio.sleep(0.1)
                self.ended_by_us = True
                self.exits(None, 15)
            ended = await self.wait()
        return ended


class ScriptedWorkspace(Workspace):
    """``processes`` holds what was started, in order. The command "missing" cannot be started."""

    def __init__(self) -> None:
        self.processes: list[ScriptedProcess] = []
        self.live = 0

    @property
    def last(self) -> ScriptedProcess:
        return self.processes[-1]

    @property
    def executor(self) -> str:
        return "scripted"

    @property
    def directory(self) -> str:
        return "/w"

    async def find(self, path: str) -> Place:
        await trio.lowlevel.checkpoint()
        real = posixpath.normpath(posixpath.join("/w", path))
        name = "." if real == "/w" else real.removeprefix("/w/")
        return Place(path, real, name, None if name == real else "/w")

    async def read(self, path: str | Place, *, offset: int = 0, length: int | None = None) -> bytes:
        raise FileMissing(str(path))

    async def read_whole(self, path: str | Place, bytes_max: int) -> WholeFile:
        raise FileMissing(str(path))

    async def write(self, path: str | Place, data: bytes) -> FileStat:
        raise FileMissing(str(path))

    async def list(self, path: str | Place) -> Sequence[DirEntry]:
        raise FileMissing(str(path))

    async def remove(self, path: str | Place) -> None:
        raise FileMissing(str(path))

    async def rename(self, source: str | Place, target: str | Place) -> None:
        raise FileMissing(str(source))

    async def search(self, query: SearchQuery) -> SearchResult:
        raise FileMissing(str(query.path))

    @asynccontextmanager
    async def start(self, command: Command) -> AsyncIterator[Process]:
        await trio.lowlevel.checkpoint()
        if command.shell == "missing":
            raise StartFailed("working directory '/w' does not exist")
        process = ScriptedProcess(command)
        self.processes.append(process)
        self.live += 1
        try:
            yield process
        finally:
            await process.end()
            self.live -= 1
