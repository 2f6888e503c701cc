"""`vaala reindex`: lists and search anew, from the conversations."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial

from vaala.cli.connecting import data_dir, find_server
from vaala.cli.data import open_writer
from vaala.cli.exits import DONE, FAILED, UNREACHABLE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.standard import say
from vaala.dao.pages import ReindexReport


def main(arguments: Namespace) -> int:
    return run_program(partial(_reindex, arguments))


async def _reindex(arguments: Namespace) -> int:
    async with find_server(arguments) as client:
        if client is not None:
            text = "a server has the data open: end it with `vaala stop`, then run this again"
            raise CommandFailed(text, UNREACHABLE)
    async with open_writer(data_dir(arguments)) as store:
        report = await store.reindex(_progress if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    say(_text(report))
    return FAILED if report.unreadable else DONE


def _progress(done: int, total: int | None) -> None:
    of = f" of {total:,}" if total is not None else ""
    print(f"\r{done:,}{of} conversations", end="", file=sys.stderr, flush=True)


def _text(report: ReindexReport) -> str:
    lines = [f"{report.conversations:,} conversations indexed"]
    if report.removed:
        lines.append(f"{report.removed:,} rows removed whose conversation is gone")
    if report.damaged:
        lines.append(f"{report.damaged:,} conversations have a gap in their log")
    lines += [f"cannot be read: {one}" for one in report.unreadable]
    return "\n".join(lines)
