"""`vaala delete`: a conversation, for good."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial

from vaala.cli.conversations import find_id
from vaala.cli.data import data_dir, open_writer
from vaala.cli.exits import DONE, FAILED, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.people import local_time, title_of
from vaala.cli.standard import aside
from vaala.dao.store import Store


def main(arguments: Namespace) -> int:
    return run_program(partial(_delete, arguments))


async def _delete(arguments: Namespace) -> int:
    async with open_writer(data_dir(arguments)) as store:
        conversation_id = await find_id(store, arguments.id)
        if not arguments.yes and not await _confirmed(store, conversation_id):
            aside("not deleted")
            return FAILED
        await store.delete(conversation_id)
    aside(f"deleted {conversation_id}")
    return DONE


async def _confirmed(store: Store, conversation_id: str) -> bool:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise CommandFailed("nobody can be asked: confirm with --yes", USAGE)
    row = await store.get(conversation_id)
    what = f"{title_of(row.info)!r} of {local_time(row.info.updated_at)}" if row else "it"
    print(
        f"delete {conversation_id}, {what}, for good? [y/n] ", end="", file=sys.stderr, flush=True
    )
    # Nothing else runs here that the read could hold up.
    return sys.stdin.readline().strip().lower() in ("y", "yes")
