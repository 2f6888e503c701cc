"""The user's server, for commands that are its clients: found, or started when there is none.

Nothing of a runtime is imported here. What only looks is content with a server that is there;
where none runs such a command reads the data itself, which is quicker than a start and leaves
nothing behind.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from vaala.cli.conversations import find_id
from vaala.cli.exits import UNREACHABLE, USAGE, CommandFailed
from vaala.cli.standard import aside
from vaala.discovery import NoRecord, is_owned, place_of, read_record
from vaala.paths import data_directory
from vaala_protocol.errors import Outdated
from vaala_protocol.ids import is_id

if TYPE_CHECKING:
    from vaala.client import CannotStart, Client
    from vaala.interface import Catalog

CLIENT_NAME = "vaala"
CONFIG_UNUSABLE = "the configuration cannot be used:"
"""How a message begins that lists what is wrong in the configuration."""


def data_dir(arguments: Namespace) -> Path:
    given: str | None = arguments.data_dir
    if not given:
        return data_directory(os.environ)
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError as error:
        raise CommandFailed(f"--data-dir {given}: {error}", USAGE) from error


@asynccontextmanager
async def open_server(arguments: Namespace, *, start: bool = True) -> AsyncGenerator[Client]:
    """Connect to the server of the data, which is started when there is none and ``start``.

    Raises `CommandFailed`. Leaving ends the connection; what runs in the server goes on.
    """
    from vaala.client import CannotConnect, CannotStart, connect

    data = data_dir(arguments)
    async with AsyncExitStack() as stack:
        connecting = connect(data, start=start, name=CLIENT_NAME, on_notice=_notice)
        try:
            client = await stack.enter_async_context(connecting)
        except CannotStart as error:
            raise _cannot_start(data, error) from error
        except CannotConnect as error:
            raise CommandFailed(str(error), UNREACHABLE) from error
        yield client


@asynccontextmanager
async def find_server(arguments: Namespace) -> AsyncGenerator[Client | None]:
    """Connect to the server of the data when one runs; yields None when none does.

    Raises `CommandFailed` when there is one and it does not answer.
    """
    place = place_of(data_dir(arguments), os.environ)
    record = await trio.to_thread.run_sync(read_record, place.record, place.data)
    if isinstance(record, NoRecord):
        yield None
        return
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(open_server(arguments, start=False))
        except CommandFailed as error:
            if await trio.to_thread.run_sync(is_owned, place.owner_lock):
                text = f"{error.message}; yet a process has the data open: see `vaala doctor`"
                raise CommandFailed(text, UNREACHABLE) from error
            client = None  # the record is left from a run that was killed
        except Outdated:  # it had nothing to do and has just begun to end
            client = None
        yield client


@asynccontextmanager
async def open_catalog(arguments: Namespace) -> AsyncGenerator[Catalog]:
    """Open what finds conversations: the server when one answers, else the data itself."""
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(find_server(arguments))
        except CommandFailed:
            client = None
        if client is not None:
            yield client
            return
        from vaala.cli.data import open_reader

        yield await stack.enter_async_context(open_reader(arguments))


async def find_named(arguments: Namespace) -> str:
    """Return the id of the conversation that a command which reads the data is told.

    A server that runs is asked: the index on disk may be a moment behind it.
    """
    if is_id(arguments.id):
        return str(arguments.id)
    async with open_catalog(arguments) as catalog:
        return await find_id(catalog, arguments.id)


async def tell_connection(client: Client, note: Callable[[str], None]) -> None:
    """Tell when the connection is lost and when there is one again, until cancelled.

    Returns when the server has been given up: whoever uses the client hears of that.
    """
    from vaala.client import Disconnected

    with suppress(Disconnected):
        while True:
            link = await client.connector.link()
            await link.ended.wait()
            note(f"vaala: the connection to the server is lost: {link.why or 'it ended'}")
            await client.connector.link()
            note(f"vaala: connected again (server process {client.server.pid})")


def directory_failed(kind: str, path: Path, way_out: str, error: OSError) -> CommandFailed:
    """Say what is wrong with a directory of ours, and the way out."""
    no_directory = isinstance(error, FileExistsError | NotADirectoryError)
    reason = "it is no directory" if no_directory else error.strerror or str(error)
    text = f"the {kind} directory {path} cannot be used: {reason}; choose another with {way_out}"
    return CommandFailed(text, UNREACHABLE)


def data_failed(path: Path, error: OSError) -> CommandFailed:
    return directory_failed("data", path, "--data-dir", error)


def _cannot_start(data: Path, error: CannotStart) -> CommandFailed:
    cause, directory = error.__cause__, place_of(data, os.environ).directory
    if isinstance(cause, OSError) and _is_about(cause, directory):
        if directory == data:
            return data_failed(data, cause)
        return directory_failed("state", directory, "XDG_STATE_HOME", cause)
    wrong = str(error).startswith(CONFIG_UNUSABLE)
    return CommandFailed(str(error), USAGE if wrong else UNREACHABLE)


def _is_about(error: OSError, directory: Path) -> bool:
    """Tell whether a directory, or what it lies in, is what the system does not let us use."""
    named = Path(str(error.filename))
    return named.is_relative_to(directory) or directory.is_relative_to(named)


def _notice(text: str) -> None:
    aside(f"vaala: {text}")
