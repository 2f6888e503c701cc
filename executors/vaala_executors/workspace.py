"""`Executor` and `Workspace`: an environment with a file system and a shell, and a place in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal

from msgspec import Struct

from vaala_executors.process import Command, Process


class FileStat(Struct, frozen=True):
    kind: Literal["file", "directory", "other"]
    size: int
    mode: int
    mtime_ns: int
    real_path: str
    is_link: bool


class DirEntry(Struct, frozen=True):
    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int


class SearchQuery(Struct, frozen=True):
    """``pattern`` is a regular expression over lines; ``glob`` chooses files by name.

    With no pattern the files themselves are the matches.
    """

    pattern: str | None = None
    glob: str | None = None
    path: str = "."
    ignore_case: bool = False
    literal: bool = False
    matches_max: int = 200


class Match(Struct, frozen=True):
    path: str
    """Relative to the workspace's root where it lies below it."""
    line: int | None
    text: str
    """The line, cut to a bounded length."""


class SearchResult(Struct, frozen=True):
    matches: tuple[Match, ...]
    truncated: bool
    note: str = ""
    """What was left out and why (time, size, matches), for people and models."""


class Workspace(ABC):
    """A working directory on an executor, with the roots that file access is confined to.

    Paths are absolute or relative to ``directory``. Every method resolves its path with the
    executor's one resolver and raises `FileProblem` kinds whose text names the path as given.
    With ``anywhere=True`` a path outside the roots is allowed (the permission gate said so).
    Cancel: reads stop; a write has either replaced the file or left it as it was.
    """

    @property
    @abstractmethod
    def executor(self) -> str: ...

    @property
    @abstractmethod
    def directory(self) -> str:
        """The absolute working directory, as it was given."""

    @abstractmethod
    async def resolve(self, path: str) -> tuple[str, bool]:
        """Return the real absolute path and whether it lies inside the roots."""

    @abstractmethod
    async def read(
        self, path: str, *, offset: int = 0, length: int | None = None, anywhere: bool = False
    ) -> bytes:
        """Return bytes of a regular file; never blocks on a FIFO or device."""

    @abstractmethod
    async def write(self, path: str, data: bytes, *, anywhere: bool = False) -> FileStat:
        """Replace or create a file atomically; keeps mode, owner and symlink; makes parents.

        Durable on return.
        """

    @abstractmethod
    async def stat(self, path: str, *, anywhere: bool = False) -> FileStat: ...

    @abstractmethod
    async def list(self, path: str, *, anywhere: bool = False) -> Sequence[DirEntry]:
        """Return a directory's entries, sorted by name."""

    @abstractmethod
    async def remove(self, path: str, *, anywhere: bool = False) -> None: ...

    @abstractmethod
    async def rename(self, source: str, target: str, *, anywhere: bool = False) -> None: ...

    @abstractmethod
    async def search(self, query: SearchQuery, *, anywhere: bool = False) -> SearchResult:
        """Search files below a directory, honouring .gitignore, skipping binary files and .git.

        Bounded in matches, bytes and time; what was left out is said in the result.
        """

    @abstractmethod
    def start(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Run a command. Raises `StartFailed` naming the directory or program that is not there.

        Leaving the context ends the whole process tree.
        """


class Executor(ABC):
    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def open_workspace(
        self, directory: str, additional: Sequence[str] = ()
    ) -> AbstractAsyncContextManager[Workspace]:
        """Open a workspace. A directory that does not exist is told at first use, not here."""

    @abstractmethod
    def left_over(self) -> AsyncIterator[int]:
        """End and yield the pids of processes that an earlier, killed runtime left behind."""
