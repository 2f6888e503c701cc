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
    """Bytes."""
    mode: int
    """The permission bits."""
    mtime_ns: int


class Place(Struct, frozen=True):
    """Where a path led when it was looked at: what a permission is given for.

    Methods that take a place work on exactly that, inside the roots or not, and raise `PathMoved`
    when the path leads to another place by then.
    """

    path: str
    """As the caller gave it, for messages."""
    real_path: str
    """Absolute, with every link followed; what is missing at its end is kept as it is."""
    name: str
    """Relative to the real working directory where it lies below it, else the real path."""
    root: str | None
    """The real root that it lies in; None outside of all."""
    stat: FileStat | None = None
    """What was there; None: nothing, or nothing that may be looked at."""


class WholeFile(Struct, frozen=True):
    stat: FileStat
    data: bytes | None
    """All of it; None when it is larger than was asked for."""


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
    path: str | Place = "."
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

    A path is absolute or relative to ``directory``; every method resolves it with the executor's
    one resolver and raises `OutsideWorkspace` when it leads out of the roots. What lies outside is
    reached through a `Place` alone, so that somebody has seen, and allowed, where it leads. Errors
    are `FileProblem` kinds whose text names the path as given.

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
    async def find(self, path: str) -> Place:
        """Return where a path leads, through a link at its end too, and what is there."""

    @abstractmethod
    async def read(self, path: str | Place, *, offset: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a regular file; never blocks on a FIFO or device."""

    @abstractmethod
    async def read_whole(self, path: str | Place, bytes_max: int) -> WholeFile:
        """Return all of a regular file that is not too large, and what it was then."""

    @abstractmethod
    async def write(self, path: str | Place, data: bytes) -> FileStat:
        """Replace or create a file atomically; keeps mode, owner and symlink; makes parents.

        Durable on return.
        """

    @abstractmethod
    async def list(self, path: str | Place) -> Sequence[DirEntry]:
        """Return a directory's entries, sorted by name."""

    @abstractmethod
    async def remove(self, path: str | Place) -> None:
        """Remove a file, an empty directory, or a link and not what it names.

        A place whose path ends in a link counts as moved.
        """

    @abstractmethod
    async def rename(self, source: str | Place, target: str | Place) -> None:
        """Rename a file, directory or link; makes the target's parents.

        Raises `FileExists` for a target that is there, except for one that another program makes
        in the same moment.
        """

    @abstractmethod
    async def search(self, query: SearchQuery) -> SearchResult:
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

    @property
    def kind(self) -> str:
        """What sort of environment it is, for people: ``local`` is this machine."""
        return "custom"

    @abstractmethod
    def open_workspace(
        self, directory: str, additional: Sequence[str] = ()
    ) -> AbstractAsyncContextManager[Workspace]:
        """Open a workspace. A directory that does not exist is told at first use, not here."""

    @abstractmethod
    def left_over(self) -> AsyncIterator[int]:
        """End and yield the pids of processes that an earlier, killed runtime left behind."""
