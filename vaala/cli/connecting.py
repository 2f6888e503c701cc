"""The user's server, for commands that are its clients: found, or started when there is none.

Nothing of a runtime is imported here. What only looks is content with a server that is there;
where none runs such a command reads the data itself, which is quicker than a start and leaves
nothing behind.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from vaala.cli.exits import UNREACHABLE, USAGE, CommandFailed
from vaala.cli.standard import aside
from vaala.discovery import NoRecord, place_of, read_record
from vaala.paths import data_directory

if TYPE_CHECKING:
    from vaala.client import Client
    from vaala.interface import Catalog

CLIENT_NAME = "vaala"
CONFIG_UNUSABLE = "the configuration cannot be used:"
"""How a message begins that lists what is wrong in the configuration."""


def data_dir(arguments: Namespace) -> Path:
    given: str | None = arguments.data_dir
    return Path(given).expanduser().absolute() if given else data_directory(os.environ)


@asynccontextmanager
async def open_server(arguments: Namespace, *, start: bool = True) -> AsyncGenerator[Client]:
    """Connect to the server of the data, which is started when there is none and ``start``.

    Raises `CommandFailed`. Leaving ends the connection; what runs in the server goes on.
    """
    from vaala.client import CannotConnect, CannotStart, connect

    async with AsyncExitStack() as stack:
        connecting = connect(data_dir(arguments), start=start, name=CLIENT_NAME, on_notice=_notice)
        try:
            client = await stack.enter_async_context(connecting)
        except CannotStart as error:
            wrong = str(error).startswith(CONFIG_UNUSABLE)
            raise CommandFailed(str(error), USAGE if wrong else UNREACHABLE) from error
        except CannotConnect as error:
            raise CommandFailed(str(error), UNREACHABLE) from error
        yield client


@asynccontextmanager
async def find_server(arguments: Namespace) -> AsyncGenerator[Client | None]:
    """Connect to the server of the data when one runs; yields None when none does."""
    place = place_of(data_dir(arguments), os.environ)
    record = await trio.to_thread.run_sync(read_record, place.record, place.data)
    if isinstance(record, NoRecord):
        yield None
        return
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(open_server(arguments, start=False))
        except CommandFailed:  # its record is left from a run that was killed
            client = None
        yield client


@asynccontextmanager
async def open_catalog(arguments: Namespace) -> AsyncGenerator[Catalog]:
    """Open what finds conversations: the server when one runs, else the data itself."""
    async with find_server(arguments) as client:
        if client is not None:
            yield client
            return
    from vaala.cli.data import open_reader

    async with open_reader(arguments) as reader:
        yield reader


def _notice(text: str) -> None:
    aside(f"vaala: {text}")
