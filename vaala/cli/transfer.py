"""`vaala export` and `vaala import`: a conversation as one archive."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import trio

from vaala.cli.connecting import data_dir, data_failed, find_named, find_server
from vaala.cli.data import open_reader, open_writer
from vaala.cli.exits import DONE, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.standard import aside, say, unwritable
from vaala.dao.archive_write import Sink
from vaala.dao.errors import BadArchive
from vaala_protocol.errors import BadRequest, Refused

if TYPE_CHECKING:
    from vaala.client import Client

T = TypeVar("T")

STANDARD = "-"
"""Stands for stdin or stdout."""


def export(arguments: Namespace) -> int:
    return run_program(partial(_export, arguments))


def import_(arguments: Namespace) -> int:
    return run_program(partial(_import, arguments))


async def _export(arguments: Namespace) -> int:
    conversation_id = await find_named(arguments)
    async with open_reader(arguments) as reader:
        name = arguments.file or f"{conversation_id}.tar.gz"
        if name == STANDARD:
            await reader.export(conversation_id, _to_stdout)
            return DONE
        await _write(name, partial(reader.export, conversation_id))
    aside(f"exported to {name}")
    return DONE


async def _write(name: str, export: Callable[[Sink], Awaitable[None]]) -> None:
    target = trio.Path(name)
    if await target.exists():
        raise CommandFailed(f"{name} exists; name another file", USAGE)
    # Written beside its place first: a name that is there is a whole archive.
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        async with await part.open("xb") as file:
            await export(file.write)
        await part.rename(target)
    except OSError as error:
        raise CommandFailed(f"{name}: {error.strerror}", UNREACHABLE) from error
    finally:
        with trio.CancelScope(shield=True):
            await part.unlink(missing_ok=True)


async def _to_stdout(data: bytes) -> None:
    try:
        await trio.to_thread.run_sync(sys.stdout.buffer.write, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(error) from error


async def _import(arguments: Namespace) -> int:
    """Read from a file or, for ``-``, stdin."""
    name: str = arguments.file

    def failed(error: OSError) -> CommandFailed:
        return CommandFailed(f"{name}: {error.strerror}", UNREACHABLE)

    try:
        file = await _left_behind(partial(_open_source, name))
    except OSError as error:
        raise failed(error) from error

    async def read(size: int) -> bytes:
        try:
            return await _left_behind(partial(file.read, size))
        except OSError as error:
            raise failed(error) from error

    data = data_dir(arguments)
    with file:
        async with find_server(arguments) as client:
            if client is not None:
                return _imported(await _into_server(client, name, file))
        async with open_writer(data) as store:
            try:
                new_id = await store.import_(read)
            except BadArchive as error:
                raise CommandFailed(f"{name}: {error}", USAGE) from error
            except OSError as error:
                raise data_failed(data, error) from error
    return _imported(new_id)


async def _into_server(client: Client, name: str, file: BinaryIO) -> str:
    """Let the server read the archive: from its file, or a copy of what is no file to others."""
    try:
        if path := await trio.to_thread.run_sync(_shared_path, name):
            return (await client.import_conversation(path)).id
        with tempfile.NamedTemporaryFile(suffix=".tar.gz") as copy:
            await _left_behind(partial(shutil.copyfileobj, file, copy))
            copy.flush()
            return (await client.import_conversation(copy.name)).id
    except Refused as error:
        if error.code not in (BadArchive.code, BadRequest.code):
            raise
        raise CommandFailed(f"{name}: {error}", USAGE) from error


def _shared_path(name: str) -> str | None:
    """Return the path of a file for other processes too; None: it is a pipe, or only ours."""
    path = os.path.realpath(name)
    return path if name != STANDARD and os.path.isfile(path) else None


def _imported(new_id: str) -> int:
    say(new_id)
    aside(f"go on with it: vaala run --conversation {new_id} --cwd DIR PROMPT")
    return DONE


def _open_source(name: str) -> BinaryIO:
    if name != STANDARD:
        return Path(name).open("rb")
    # Unbuffered: a thread that is left behind in a read must not hold the lock of the buffer.
    source: BinaryIO = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    return source


async def _left_behind(read: Callable[[], T]) -> T:
    """Read in a thread that a cancel leaves to itself: stdin and pipes may never end."""
    return await trio.to_thread.run_sync(read, abandon_on_cancel=True)
