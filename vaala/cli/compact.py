"""`vaala compact`: a summary takes the place of what was said, for the model."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from vaala.cli.connecting import open_server
from vaala.cli.conversations import find_id
from vaala.cli.exits import DONE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.interrupts import heed_signals
from vaala.cli.outcome import code_of
from vaala.cli.standard import aside
from vaala.client import RemoteConversation
from vaala_protocol.events import Frame, TurnChanged
from vaala_protocol.state import TurnInfo


def main(arguments: Namespace) -> int:
    return run_program(partial(_compact, arguments))


async def _compact(arguments: Namespace) -> int:
    async with heed_signals() as interrupts, open_server(arguments) as client:
        conversation = client.conversation(await find_id(client, arguments.id))
        turn = await _ended(conversation)
        code = code_of(turn)
        if code != DONE:
            raise CommandFailed(turn.message or f"the compaction was {turn.state}", code)
        aside(turn.message)
        return DONE
    return 128 + interrupts.received


async def _ended(conversation: RemoteConversation) -> TurnInfo:
    """Compact, and return the turn of that when it has ended."""
    async with conversation.subscribe() as updates:
        await anext(updates)
        begun = await conversation.compact()
        async for update in updates:
            match update:
                case Frame(event=TurnChanged(turn=turn)):
                    if turn.id == begun.id and turn.state != "running":
                        return turn
                case Frame():
                    pass
                case _:  # a snapshot stands for what was missed
                    found = (await conversation.turn(begun.id)).turn
                    if found.state != "running":
                        return found
    raise CommandFailed(f"conversation {conversation.id} was closed before it was compacted")
