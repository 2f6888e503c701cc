"""The user's data directory, for commands that need no runtime around it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from vaala.config.paths import data_directory
from vaala.dao.opening import open_store, open_store_readonly
from vaala.dao.reader import Reader
from vaala.dao.store import Store


def data_dir(arguments: Namespace) -> Path:
    given: str | None = arguments.data_dir
    return Path(given).expanduser().absolute() if given else data_directory(os.environ)


@asynccontextmanager
async def open_reader(arguments: Namespace) -> AsyncGenerator[Reader]:
    """Open the data for reading, also while a runtime owns it."""
    async with open_store_readonly(data_dir(arguments)) as reader:
        yield reader


@asynccontextmanager
async def open_writer(arguments: Namespace) -> AsyncGenerator[Store]:
    """Open the data as its owner; raises `StoreLocked` when a runtime has it."""
    async with open_store(data_dir(arguments)) as store:
        yield store
