"""`vaala search`: conversations by words in titles and messages."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from vaala.cli.connecting import open_catalog
from vaala.cli.exits import DONE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.listing import limit_of, tell_incomplete
from vaala.cli.people import local_time, short_ids, title_of
from vaala.cli.standard import say
from vaala.interface import Catalog
from vaala.tools.text import clean_line
from vaala_protocol.base import encode
from vaala_protocol.pages import SearchResult

PAGES_MAX = 50
"""How many pages of hits are looked through: one conversation may have very many."""


def main(arguments: Namespace) -> int:
    return run_program(partial(_search, arguments))


async def _search(arguments: Namespace) -> int:
    text = " ".join(arguments.text)
    if not text.strip():
        raise CommandFailed("nothing to search for: give the words that must occur", USAGE)
    limit = limit_of(arguments)
    async with open_catalog(arguments) as catalog:
        results, complete = await _best(catalog, text, limit)
    if arguments.json:
        for result in results:
            say(_json(result))
    elif results:
        say("\n".join(_lines(results)))
    else:
        say(f"nothing found for {clean_line(text, 80)!r}")
    tell_incomplete(complete)
    return DONE


async def _best(catalog: Catalog, text: str, limit: int) -> tuple[list[SearchResult], bool]:
    """Return the best hit of each conversation, at most ``limit`` of them, best first; and
    whether all were looked through."""
    found: dict[str, SearchResult] = {}
    complete = True
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await catalog.search(text, cursor, limit)
        for result in page.results:
            found.setdefault(result.conversation.id, result)
        complete = complete and page.complete
        cursor = page.cursor
        if cursor is None or len(found) >= limit:
            break
    return list(found.values())[:limit], complete


def _json(result: SearchResult) -> str:
    fields = {
        "conversation": result.conversation,
        "itemId": result.item_id,
        "snippet": result.snippet,
    }
    return encode(fields).decode()


def _lines(results: list[SearchResult]) -> list[str]:
    short = short_ids([result.conversation.id for result in results])
    lines: list[str] = []
    for result in results:
        info = result.conversation
        lines.append(f"{short[info.id]}  {local_time(info.updated_at)}  {title_of(info)}")
        if result.item_id is not None:
            lines.append(f"    {clean_line(result.snippet, 160)}")
    return lines
