"""`vaala export` and `vaala import`: a conversation as one archive."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from vaala.cli.conversations import find_id
from vaala.cli.data import open_reader, open_writer
from vaala.cli.exits import DONE, FAILED, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.dao.archive_write import Sink

STDOUT = "-"


def export(arguments: Namespace) -> int:
    return run_program(partial(_export, arguments))


def import_(arguments: Namespace) -> int:
    return run_program(partial(_import, arguments))


async def _export(arguments: Namespace) -> int:
    async with open_reader(arguments) as reader:
        conversation_id = await find_id(reader, arguments.id)
        name = arguments.file or f"{conversation_id}.tar.gz"
        if name == STDOUT:
            await reader.export(conversation_id, _to_stdout)
            return DONE
        await _write(name, partial(reader.export, conversation_id))
    print(f"exported to {name}", file=sys.stderr)
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
        raise CommandFailed(f"{name}: {error.strerror}", FAILED) from error
    finally:
        with trio.CancelScope(shield=True):
            await part.unlink(missing_ok=True)


async def _to_stdout(data: bytes) -> None:
    await trio.to_thread.run_sync(sys.stdout.buffer.write, data)


async def _import(arguments: Namespace) -> int:
    try:
        async with (
            await trio.open_file(arguments.file, "rb") as file,
            open_writer(arguments) as store,
        ):
            new_id = await store.import_(file.read)
    except OSError as error:
        raise CommandFailed(f"{arguments.file}: {error.strerror}", USAGE) from error
    print(new_id)
    print(f"go on with it: vaala run --conversation {new_id} --cwd DIR PROMPT", file=sys.stderr)
    return DONE
