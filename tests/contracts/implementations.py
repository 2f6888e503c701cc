"""What the contract suites run over: one line for each implementation of an interface."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import trio

from vaala_storage import BlobStorage, LogStorage
from vaala_storage.file import open_file_blobs, open_file_log
from vaala_storage.sqlite import open_sqlite
from vaala_storage.staged import StagedStorage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Implementation(Generic[T]):
    name: str
    open: Callable[[Path], AbstractAsyncContextManager[T]]
    """Opens the store in a directory, again and again."""
    lasting: bool = True
    """Whether what was stored is there when the directory is opened again."""

    def __str__(self) -> str:
        return self.name


@asynccontextmanager
async def open_sqlite_log(directory: Path) -> AsyncGenerator[LogStorage]:
    await trio.Path(directory).mkdir(exist_ok=True)
    async with open_sqlite(directory / "store.db") as database:
        yield database.log


@asynccontextmanager
async def open_sqlite_blobs(directory: Path) -> AsyncGenerator[BlobStorage]:
    await trio.Path(directory).mkdir(exist_ok=True)
    async with open_sqlite(directory / "store.db") as database:
        yield database.blobs


@asynccontextmanager
async def open_staged_log(_directory: Path) -> AsyncGenerator[LogStorage]:
    yield StagedStorage().log


@asynccontextmanager
async def open_staged_blobs(_directory: Path) -> AsyncGenerator[BlobStorage]:
    yield StagedStorage().blobs


LOGS: list[Implementation[LogStorage]] = [
    Implementation("file", open_file_log),
    Implementation("sqlite", open_sqlite_log),
    Implementation("staged", open_staged_log, lasting=False),
]

BLOBS: list[Implementation[BlobStorage]] = [
    Implementation("file", open_file_blobs),
    Implementation("sqlite", open_sqlite_blobs),
    Implementation("staged", open_staged_blobs, lasting=False),
]
