"""`vaala delete`: a conversation, for good."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial

from vaala.cli.connecting import data_dir, find_server
from vaala.cli.conversations import find_id
from vaala.cli.exits import DONE, FAILED, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.people import local_time, title_of
from vaala.cli.standard import aside
from vaala.interface import Catalog


def main(arguments: Namespace) -> int:
    return run_program(partial(_delete, arguments))


async def _delete(arguments: Namespace) -> int:
    async with find_server(arguments) as client:
        if client is not None:
            return await _delete_from(client, client.delete_conversation, arguments)
    from vaala.cli.data import open_writer

    async with open_writer(data_dir(arguments)) as store:
        return await _delete_from(store, store.delete, arguments)


async def _delete_from(
    catalog: Catalog, delete: Callable[[str], Awaitable[None]], arguments: Namespace
) -> int:
    conversation_id = await find_id(catalog, arguments.id)
    if not arguments.yes and not await _confirmed(catalog, conversation_id):
        aside("not deleted")
        return FAILED
    await delete(conversation_id)
    aside(f"deleted {conversation_id}")
    return DONE


async def _confirmed(catalog: Catalog, conversation_id: str) -> bool:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise CommandFailed("nobody can be asked: confirm with --yes", USAGE)
    row = await catalog.get(conversation_id)
    what = f"{title_of(row.info)!r} of {local_time(row.info.updated_at)}" if row else "it"
    print(
        f"delete {conversation_id}, {what}, for good? [y/n] ", end="", file=sys.stderr, flush=True
    )
    # Nothing else runs here that the read could hold up.
    return sys.stdin.readline().strip().lower() in ("y", "yes")
