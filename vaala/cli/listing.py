"""`vaala list`: conversations, newest first."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from functools import partial

import trio

from vaala.cli.connecting import open_catalog
from vaala.cli.exits import DONE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.people import directory_of, local_time, short_ids, title_of
from vaala.cli.standard import aside, say
from vaala.tools.text import clean_line
from vaala_protocol.base import encode, to_json
from vaala_protocol.pages import ConversationRow, ListQuery

LIMIT_DEFAULT = 20
LIMIT_MAX = 1000


def main(arguments: Namespace) -> int:
    return run_program(partial(_list, arguments))


async def _list(arguments: Namespace) -> int:
    limit = limit_of(arguments)
    directory = str(await trio.Path(arguments.cwd).resolve()) if arguments.cwd else None
    async with open_catalog(arguments) as catalog:
        page = await catalog.list(ListQuery(directory=directory), None, limit)
    if arguments.json:
        for row in page.rows:
            say(row_json(row))
    elif page.rows:
        say("\n".join(map(_fitting, _lines(list(page.rows)))))
        if page.cursor is not None:
            aside(f"(the newest {limit}; more with --limit)")
    else:
        where = f" in {directory}" if directory else ""
        say(f'no conversations{where} yet; begin one: vaala run "What is here?"')
    tell_incomplete(page.complete)
    return DONE


def tell_incomplete(complete: bool) -> None:
    """Say that a page of a list or a search may lack something."""
    if not complete:
        aside(
            "vaala: some conversations may be missing here: the index is being made anew, or cannot"
            " be written now (see `vaala doctor`); it catches up by itself"
        )


def limit_of(arguments: Namespace) -> int:
    """Return how many to show; raises `CommandFailed`."""
    text: str | None = arguments.limit
    if text is None:
        return LIMIT_DEFAULT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= LIMIT_MAX:
        raise CommandFailed(f"--limit {text}: expected a number from 1 to {LIMIT_MAX}", USAGE)
    return int(text)


def row_json(row: ConversationRow) -> str:
    fields = {
        **to_json(row.info),
        "sessions": row.sessions, "turns": row.turns, "items": row.items, "snippet": row.snippet,
    }  # fmt: skip
    return encode(fields).decode()


def _fitting(line: str) -> str:
    """Return a line as wide as the terminal at most; elsewhere it is left whole."""
    if not sys.stdout.isatty():
        return line
    return clean_line(line, os.get_terminal_size(sys.stdout.fileno()).columns or len(line))


def _lines(rows: list[ConversationRow]) -> list[str]:
    short = short_ids([row.id for row in rows])
    width = max(map(len, short.values()))
    lines: list[str] = []
    for row in rows:
        info = row.info
        state = "" if info.status == "idle" else f"[{info.status}] "
        head = f"{short[row.id]:{width}}  {local_time(info.updated_at)}  "
        lines.append(f"{head}{state}{title_of(info)}  {directory_of(info)}".rstrip())
    return lines
