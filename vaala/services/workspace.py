"""`ServicedWorkspace`: a local workspace whose text files and commands may be served by clients."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from vaala.services import limits
from vaala.services.environment import Environment
from vaala.services.files import read_text, text_of, write_text
from vaala.services.registry import Services
from vaala.services.terminal import run_in_terminal
from vaala_executors.errors import FileMissing
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

LOCAL = "local"
"""The executor whose files and commands are those of this machine, and of clients on it."""


def serviced(
    workspace: Workspace,
    services: Services,
    environment: Environment,
    served: Callable[[str], None],
) -> Workspace:
    """Return a workspace for one call, as the clients of its conversation serve it at that time.

    ``served`` is told each client that serves a part. Only the local executor's is served: clients
    have neither the files nor the machine of any other.
    """
    if workspace.executor != LOCAL:
        return workspace
    return ServicedWorkspace(workspace, services, environment, served)


class ServicedWorkspace(Workspace):
    """Whole text files are read and written through the newest client that does so, commands run
    in the terminal of the newest client that has one; the rest is the workspace's own.

    The stat of a file is the disk's, but for its size, which is that of the content given. What a
    client has and the disk has not is a file with the time 0. Two contents are told apart by their
    bytes, as file tools do: a client that shows a file otherwise than the disk (another one
    opened, it saved in another format) makes it one that has changed since it was read.
    """

    def __init__(
        self,
        inner: Workspace,
        services: Services,
        environment: Environment,
        served: Callable[[str], None],
    ) -> None:
        self._inner = inner
        self._services = services
        self._environment = environment
        self._served = served

    @property
    def executor(self) -> str:
        return self._inner.executor

    @property
    def directory(self) -> str:
        return self._inner.directory

    async def find(self, path: str) -> Place:
        return await self._inner.find(path)

    async def read(self, path: str | Place, *, offset: int = 0, length: int | None = None) -> bytes:
        if self._services.reader is None:
            return await self._inner.read(path, offset=offset, length=length)
        whole = await self.read_whole(path, limits.TEXT_BYTES_MAX)
        if whole.data is None:
            return await self._inner.read(path, offset=offset, length=length)
        return whole.data[offset : None if length is None else offset + length]

    async def read_whole(self, path: str | Place, bytes_max: int) -> WholeFile:
        """See `Workspace.read_whole`. Raises `ServiceFailure` too: see `read_text`."""
        try:
            disk = await self._inner.read_whole(path, bytes_max)
        except FileMissing:
            data = await self._read_through(path)
            if data is None or len(data) > bytes_max:
                raise
            return WholeFile(_unsaved(data), data)
        if disk.data is None or text_of(disk.data) is None:
            return disk
        data = await self._read_through(path)
        if data is None or len(data) > bytes_max:
            return disk
        return WholeFile(replace(disk.stat, size=len(data)), data)

    async def write(self, path: str | Place, data: bytes) -> FileStat:
        """See `Workspace.write`; through a client it is as durable as the client makes it.

        Raises `ServiceFailure` too, when the client refuses, or when the file may or may not have
        been written.
        """
        text = text_of(data)
        name = await self._name(path)
        if self._services.writer is None or text is None or name is None:
            return await self._inner.write(path, data)
        try:
            # Whether the path may be used is the executor's to say, and what it has there.
            disk = await self._inner.read_whole(path, limits.TEXT_BYTES_MAX)
            through = disk.data is not None and text_of(disk.data) is not None
        except FileMissing:
            through = True
        live = self._services.writer if through else None
        if live is None or not await write_text(live, name, text):
            return await self._inner.write(path, data)
        self._served(live.client)
        found = (await self._inner.find(path if isinstance(path, str) else path.path)).stat
        return _unsaved(data) if found is None else replace(found, size=len(data))

    async def list(self, path: str | Place) -> Sequence[DirEntry]:
        return await self._inner.list(path)

    async def remove(self, path: str | Place) -> None:
        await self._inner.remove(path)

    async def rename(self, source: str | Place, target: str | Place) -> None:
        await self._inner.rename(source, target)

    async def search(self, query: SearchQuery) -> SearchResult:
        return await self._inner.search(query)

    @asynccontextmanager
    async def start(self, command: Command) -> AsyncGenerator[Process]:
        """See `Workspace.start`. The client's environment is laid under what the command names."""
        live = self._services.terminals
        if live is None:
            env = {**self._environment.overlay, **command.env}
            async with self._inner.start(replace(command, env=env)) as process:
                yield process
            return
        directory = self.directory
        if command.cwd != ".":
            directory = posixpath.join(directory, command.cwd)
        started = run_in_terminal(live, command, directory, self._environment.overlay)
        async with started as process:
            self._served(live.client)
            yield process

    async def _read_through(self, path: str | Place) -> bytes | None:
        """Return what the newest client has of a file; None: no client has it."""
        name = await self._name(path)
        live = self._services.reader
        if live is None or name is None:
            return None
        data = await read_text(live, name)
        if data is not None:
            self._served(live.client)
        return data

    async def _name(self, path: str | Place) -> str | None:
        """Return the absolute path by which a client knows a file; None for one it cannot.

        Below the working directory that is the directory as it was given, links and all: a person
        opens files by it.
        """
        place = await self._inner.find(path) if isinstance(path, str) else path
        name = posixpath.join(self.directory, place.name)
        try:
            name.encode()
        except UnicodeEncodeError:  # a file name in another encoding: no JSON can hold it
            return None
        return name


def _unsaved(data: bytes) -> FileStat:
    return FileStat(kind="file", size=len(data), mode=0o644, mtime_ns=0)
