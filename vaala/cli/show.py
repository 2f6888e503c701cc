"""`vaala show`: a conversation from its beginning to its end."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator
from functools import partial

from vaala.cli.connecting import find_named
from vaala.cli.data import open_reader
from vaala.cli.exits import DONE
from vaala.cli.failures import run_program
from vaala.cli.people import directory_of, local_time, title_of
from vaala.cli.standard import say
from vaala.cli.transcript import item_text
from vaala.dao.session_log import SessionLog
from vaala_protocol.base import encode
from vaala_protocol.items import Item
from vaala_protocol.public import public_item
from vaala_protocol.state import ConversationInfo, SessionInfo

PAGE_ITEMS = 200


def main(arguments: Namespace) -> int:
    return run_program(partial(_show, arguments))


async def _show(arguments: Namespace) -> int:
    conversation_id = await find_named(arguments)
    async with open_reader(arguments) as reader:
        log = await reader.open(conversation_id)
        try:
            session = await log.open_session(conversation_id)
            if not arguments.json:
                say(_head(log.record, session.state.info))
            async for item in _items(session):
                if arguments.json:
                    say(encode(public_item(item)).decode())
                elif text := item_text(item):
                    say(f"\n{text}")
        finally:
            await log.close()
    return DONE


async def _items(session: SessionLog) -> AsyncIterator[Item]:
    after: int | None = 0
    while after is not None:
        page = await session.items(after=after, limit=PAGE_ITEMS)
        for item in page.items:
            yield item
        after = page.items[-1].at if page.later and page.items else None


def _head(info: ConversationInfo, session: SessionInfo) -> str:
    lines = [
        title_of(info, 200),
        f"{info.id}, agent {session.agent}, {local_time(info.created_at)}",
    ]
    if directory := directory_of(info):
        lines.append(directory)
    return "\n".join(lines)
