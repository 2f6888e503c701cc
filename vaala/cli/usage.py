"""`vaala usage`: tokens and money, of one conversation or of all."""

from __future__ import annotations

import os
import re
import time
from argparse import Namespace
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from decimal import ROUND_UP, Decimal
from functools import partial
from typing import Protocol

from msgspec import Struct

from vaala.cli.connecting import find_named, find_server
from vaala.cli.exits import DONE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.people import local_time, short_ids
from vaala.cli.standard import say
from vaala.client import Client
from vaala.paths import config_directory
from vaala.tools.text import clean_line, size_text
from vaala_protocol.base import encode
from vaala_protocol.methods.conversation import ConversationUsageParams
from vaala_protocol.methods.runtime import RuntimeUsageParams
from vaala_protocol.prices import Cost
from vaala_protocol.settings import Usage
from vaala_protocol.usage import ConversationSpent, ModelUsage, Spent, UsagePage

_AGO = re.compile(r"(\d{1,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}
_PAGE = 50
_SHOWN_MAX = 20
"""How many conversations, or turns, are listed."""
_CENT = Decimal("0.01")
_FINEST = Decimal("0.0001")


def main(arguments: Namespace) -> int:
    since = None if arguments.since is None else since_ms(arguments.since, time.time())
    program = _one if arguments.id else _all
    return run_program(partial(program, arguments, since))


def since_ms(text: str, now_s: float) -> int:
    """Return a day, or a time so long ago, in milliseconds; raises `CommandFailed`."""
    if (ago := _AGO.fullmatch(text)) is not None:
        return int((now_s - int(ago[1]) * _HOURS[ago[2]] * 3600) * 1000)
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        hint = "expected a day, as in 2026-11-30, or 12h, 7d, 4w"
        raise CommandFailed(f"--since {text}: {hint}", USAGE) from None


class _Source(Protocol):
    async def one(self, conversation_id: str, since: int | None) -> ConversationSpent: ...

    async def page(self, since: int | None, cursor: str | None) -> UsagePage: ...


class _Server(Struct, frozen=True):
    client: Client

    async def one(self, conversation_id: str, since: int | None) -> ConversationSpent:
        return await self.client.ask(
            ConversationUsageParams(conversation_id=conversation_id, since=since)
        )

    async def page(self, since: int | None, cursor: str | None) -> UsagePage:
        return await self.client.ask(RuntimeUsageParams(since=since, cursor=cursor, limit=_PAGE))


@asynccontextmanager
async def _source(arguments: Namespace) -> AsyncGenerator[_Source]:
    """Open what tells usage: the server where one runs, else data and configuration."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(find_server(arguments))
        if client is not None:
            yield _Server(client)
            return
        from vaala.cli.data import open_reader
        from vaala.cli.usage_data import UsageData
        from vaala.config.keeper import open_keeper

        opening = open_keeper(config_directory(os.environ), os.environ)
        keeper = await stack.enter_async_context(opening)
        yield UsageData(await stack.enter_async_context(open_reader(arguments)), keeper)


async def _one(arguments: Namespace, since: int | None) -> int:
    conversation_id = await find_named(arguments)
    async with _source(arguments) as source:
        found = await source.one(conversation_id, since)
    if arguments.json:
        say(encode(found).decode())
    else:
        say("\n".join(conversation_lines(found)))
    return DONE


async def _all(arguments: Namespace, since: int | None) -> int:
    async with _source(arguments) as source:
        found = [one async for one in _pages(source, since)]
    total = together([one.spent for one in found])
    if arguments.json:
        for one in found:
            say(encode(one).decode())
        say(encode({"total": total}).decode())
        return DONE
    if not found:
        say("nothing was used" if since is None else "nothing was used since then")
        return DONE
    say("\n".join(_list_lines(found)))
    say("\n".join(_spent_lines(total, f"all {size_text(len(found), 'conversation')}")))
    return DONE


async def _pages(source: _Source, since: int | None) -> AsyncIterator[ConversationSpent]:
    cursor: str | None = None
    while True:
        page = await source.page(since, cursor)
        for one in page.conversations:
            yield one
        cursor = page.cursor
        if cursor is None:
            return


def together(spent: list[Spent]) -> Spent:
    """Return the sum; exact, and never less certain than its parts."""
    models: dict[str, ModelUsage] = {}
    for one in spent:
        for model in one.models:
            known = models.get(model.model)
            models[model.model] = model if known is None else _sum(known, model)
    parts = list(models.values())
    usage = sum((part.usage for part in parts), Usage())
    return Spent(usage=usage, cost=_cost(parts), models=tuple(parts))


def _sum(one: ModelUsage, other: ModelUsage) -> ModelUsage:
    usage = one.usage + other.usage
    return ModelUsage(model=one.model, usage=usage, cost=_cost([one, other]))


def _cost(parts: list[ModelUsage]) -> Cost | None:
    costs = [part.cost for part in parts if part.cost is not None]
    if not costs:
        return None
    usd = sum((Decimal(cost.usd) for cost in costs), Decimal(0))
    at_least = any(cost.at_least for cost in costs) or any(
        part.cost is None and part.usage.total for part in parts
    )
    return Cost(usd=f"{usd:f}", at_least=at_least)


def conversation_lines(found: ConversationSpent) -> Iterator[str]:
    """Yield what a conversation used: as a whole, by session, by turn."""
    yield clean_line(found.title or found.id, 200)
    yield from _spent_lines(found.spent, size_text(found.turns, "turn"))
    for session in found.sessions:
        if len(found.sessions) > 1:
            yield f"session {session.id}: {money(session.spent.cost)}"
        if (fill := session.context) is not None:
            share = f" of {fill.window:,} ({fill.tokens / fill.window:.0%})" if fill.window else ""
            yield f"  context now {fill.tokens:,} tokens{share}"
    for turn in found.newest[:_SHOWN_MAX]:
        state = "" if turn.state == "completed" else f" [{turn.state}]"
        tokens = size_text(turn.spent.usage.total, "token")
        yield f"  {local_time(turn.started_at)}{state}  {tokens}, {money(turn.spent.cost)}"
    if found.turns > _SHOWN_MAX:
        yield f"  (the newest {_SHOWN_MAX} of {found.turns:,} turns)"


def _list_lines(found: list[ConversationSpent]) -> Iterator[str]:
    shown = found[:_SHOWN_MAX]
    short = short_ids([one.id for one in shown])
    for one in shown:
        tokens = size_text(one.spent.usage.total, "token")
        title = clean_line(one.title or "(no title)", 60)
        yield f"{short[one.id]}  {tokens}, {money(one.spent.cost)}  {title}"
    if len(found) > _SHOWN_MAX:
        yield f"(the newest {_SHOWN_MAX}; all with --json)"


def _spent_lines(spent: Spent, what: str) -> Iterator[str]:
    yield f"{what}: {size_text(spent.usage.total, 'token')}, {money(spent.cost)}"
    for part in spent.models:
        usage = part.usage
        counts = (
            ("in", usage.input), ("from cache", usage.cache_read), ("to cache", usage.cache_write),
            ("out", usage.output), ("reasoning", usage.reasoning),
        )  # fmt: skip
        classes = ", ".join(f"{count:,} {name}" for name, count in counts if count)
        yield f"  {clean_line(part.model, 120)}: {classes or '0 tokens'}; {money(part.cost)}"


def money(cost: Cost | None) -> str:
    """Return a sum for people, rounded up; one that is not known says so."""
    if cost is None:
        return "price not known"
    usd = Decimal(cost.usd)
    shown = usd.quantize(_CENT if usd >= 1 else _FINEST, ROUND_UP)
    return f"{'at least ' if cost.at_least else ''}${shown:,f}"
