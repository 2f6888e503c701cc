"""The user's data directory, for commands that need no runtime around it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from vaala.cli.connecting import data_dir, data_failed
from vaala.dao.opening import open_store, open_store_readonly
from vaala.dao.reader import Reader
from vaala.dao.store import Store

T = TypeVar("T")


@asynccontextmanager
async def open_reader(arguments: Namespace) -> AsyncGenerator[Reader]:
    """Open the data for reading, also while a runtime owns it; raises `CommandFailed`."""
    path = data_dir(arguments)
    async with _opened(path, open_store_readonly(path)) as reader:
        yield reader


@asynccontextmanager
async def open_writer(path: Path) -> AsyncGenerator[Store]:
    """Open the data as its owner; raises `CommandFailed`, `StoreLocked` when a runtime has it."""
    async with _opened(path, open_store(path)) as store:
        yield store


@asynccontextmanager
async def _opened(path: Path, opening: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """Open; what the system says against the directory becomes one line."""
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(opening)
        except OSError as error:
            raise data_failed(path, error) from error
        yield store
