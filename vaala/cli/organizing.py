"""`vaala rename`, `vaala archive` and `vaala fork`."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from vaala.cli.connecting import open_server
from vaala.cli.conversations import find_id
from vaala.cli.exits import DONE
from vaala.cli.failures import run_program
from vaala.cli.standard import aside, say


def rename(arguments: Namespace) -> int:
    return run_program(partial(_rename, arguments))


def archive(arguments: Namespace) -> int:
    return run_program(partial(_archive, arguments))


def fork(arguments: Namespace) -> int:
    return run_program(partial(_fork, arguments))


async def _rename(arguments: Namespace) -> int:
    async with open_server(arguments) as client:
        conversation = client.conversation(await find_id(client, arguments.id))
        await conversation.update(title=" ".join(arguments.title))
    return DONE


async def _archive(arguments: Namespace) -> int:
    async with open_server(arguments) as client:
        conversation = client.conversation(await find_id(client, arguments.id))
        await conversation.update(archived=not arguments.undo)
    return DONE


async def _fork(arguments: Namespace) -> int:
    async with open_server(arguments) as client:
        conversation_id = await find_id(client, arguments.id)
        copy = await client.fork_conversation(conversation_id, arguments.turn)
    say(copy.id)
    aside(f"go on with it: vaala run --conversation {copy.id} PROMPT")
    return DONE
