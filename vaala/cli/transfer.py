"""`vaala export` and `vaala import`: a conversation as one archive."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import trio

from vaala.cli.conversations import find_id
from vaala.cli.data import data_dir, data_failed, open_reader, open_writer
from vaala.cli.exits import DONE, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.standard import aside, say, unwritable
from vaala.dao.archive_write import Sink
from vaala.dao.errors import BadArchive

STANDARD = "-"
"""Stands for stdin or stdout."""


def export(arguments: Namespace) -> int:
    return run_program(partial(_export, arguments))


def import_(arguments: Namespace) -> int:
    return run_program(partial(_import, arguments))


async def _export(arguments: Namespace) -> int:
    async with open_reader(arguments) as reader:
        conversation_id = await find_id(reader, arguments.id)
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
        file = await trio.to_thread.run_sync(_open_source, name)
    except OSError as error:
        raise failed(error) from error

    async def read(size: int) -> bytes:
        try:
            return await trio.to_thread.run_sync(file.read, size)
        except OSError as error:
            raise failed(error) from error

    data = data_dir(arguments)
    with file:
        async with open_writer(data) as store:
            try:
                new_id = await store.import_(read)
            except BadArchive as error:
                raise CommandFailed(f"{name}: {error}", USAGE) from error
            except OSError as error:
                raise data_failed(data, error) from error
    say(new_id)
    aside(f"go on with it: vaala run --conversation {new_id} --cwd DIR PROMPT")
    return DONE


def _open_source(name: str) -> BinaryIO:
    return sys.stdin.buffer if name == STANDARD else Path(name).open("rb")
