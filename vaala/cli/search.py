"""`vaala search`: conversations by words in titles and messages."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from vaala.cli.data import open_reader
from vaala.cli.exits import DONE
from vaala.cli.failures import run_program
from vaala.cli.listing import limit_of
from vaala.cli.people import local_time, short_ids, title_of
from vaala.cli.standard import say
from vaala.dao.pages import SearchResult
from vaala.tools.text import clean_line
from vaala_protocol.base import encode


def main(arguments: Namespace) -> int:
    return run_program(partial(_search, arguments))


async def _search(arguments: Namespace) -> int:
    text = " ".join(arguments.text)
    async with open_reader(arguments) as reader:
        page = await reader.search(text, None, limit_of(arguments))
    if arguments.json:
        for result in page.results:
            say(_json(result))
    elif page.results:
        say("\n".join(_lines(page.results)))
    else:
        say(f"nothing found for {clean_line(text, 80)!r}")
    return DONE


def _json(result: SearchResult) -> str:
    fields = {
        "conversation": result.conversation,
        "itemId": result.item_id,
        "snippet": result.snippet,
    }
    return encode(fields).decode()


def _lines(results: tuple[SearchResult, ...]) -> list[str]:
    short = short_ids(list(dict.fromkeys(result.conversation.id for result in results)))
    lines: list[str] = []
    for result in results:
        info = result.conversation
        lines.append(f"{short[info.id]}  {local_time(info.updated_at)}  {title_of(info)}")
        if result.item_id is not None:
            lines.append(f"    {clean_line(result.snippet, 160)}")
    return lines
