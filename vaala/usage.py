"""What conversations used and what that cost: the durable usage of turns, priced by model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import TypeAlias

from msgspec import Struct

from vaala.dao.metadata import Metadata
from vaala.dao.reader import Reader
from vaala.dao.used import TurnUsed
from vaala.limits import USAGE_TURNS_MAX
from vaala.models.catalogue.costs import Paid, cost, day_of, paid
from vaala.models.catalogue.facts import Known
from vaala_protocol.errors import NotFound
from vaala_protocol.pages import ListQuery
from vaala_protocol.prices import ModelPrices
from vaala_protocol.settings import Usage
from vaala_protocol.state import ConversationInfo, StepInfo
from vaala_protocol.usage import (
    ContextFill,
    ConversationSpent,
    ModelUsage,
    SessionSpent,
    Spent,
    TurnSpent,
    UsagePage,
)

Knows: TypeAlias = Callable[[str], Known]
"""Returns what is known of a model, by its name."""

_EVERYTHING = ListQuery(archived=None)


class _Share(Struct, frozen=True):
    """What one model used, and what of that is priced."""

    usage: Usage = Usage()
    paid: Paid = Paid()

    def __add__(self, other: _Share) -> _Share:
        return _Share(self.usage + other.usage, self.paid + other.paid)


_Shares: TypeAlias = Mapping[str, _Share]


async def conversation_usage(
    reader: Reader, conversation_id: str, knows: Knows, since: int | None = None
) -> ConversationSpent:
    """Return what a conversation used, by session and turn. Raises `NotFound`.

    ``since``: only turns that run, or ended at this time (milliseconds) or later.
    """
    row = await reader.get(conversation_id)
    info = row.info if row else ConversationInfo(id=conversation_id, created_at=0, updated_at=0)
    return await _spent(reader, info, knows, since)


async def usage_page(
    reader: Reader, knows: Knows, since: int | None, cursor: str | None, limit: int
) -> UsagePage:
    """Return what conversations used, those that were used last first.

    Raises `BadRequest` for a cursor that does not fit.
    """
    page = await reader.list(_EVERYTHING, cursor, limit)
    found: list[ConversationSpent] = []
    for row in page.rows:
        if since is not None and row.info.updated_at < since:
            return UsagePage(conversations=tuple(found))
        try:
            one = await _spent(reader, row.info, knows, since)
        except NotFound:  # it was deleted meanwhile
            continue
        if one.turns:
            found.append(_brief(one))
    return UsagePage(conversations=tuple(found), cursor=page.cursor)


def _brief(one: ConversationSpent) -> ConversationSpent:
    return ConversationSpent(
        id=one.id, title=one.title, updated_at=one.updated_at, turns=one.turns, spent=one.spent
    )


async def _spent(
    reader: Reader, info: ConversationInfo, knows: Knows, since: int | None
) -> ConversationSpent:
    total: dict[str, _Share] = {}
    sessions: dict[str, dict[str, _Share]] = {}
    fills: dict[str, ContextFill] = {}
    newest: list[TurnSpent] = []
    turns = 0
    record = await reader.record(info.id)
    if record.title_usage != Usage() and record.titled_at >= max(since or 0, record.created_at):
        _add(total, {record.title_model: _titling(record, knows)})
    async with aclosing(reader.used(info.id, since)) as used:
        async for one in used:
            if one.session_id not in fills and (fill := _fill(one.steps, knows)) is not None:
                fills[one.session_id] = fill
            if one.turn.ended_at is not None and one.turn.ended_at < record.created_at:
                continue
            shares = _shares(one, knows)
            _add(total, shares)
            _add(sessions.setdefault(one.session_id, {}), shares)
            turns += 1
            newest.append(_turn_spent(one, shares))
            if len(newest) > 2 * USAGE_TURNS_MAX:
                newest = _newest(newest)
    return ConversationSpent(
        id=info.id,
        title=info.title,
        updated_at=info.updated_at,
        turns=turns,
        spent=_told(total),
        sessions=tuple(
            SessionSpent(id=id, spent=_told(shares), context=fills.get(id))
            for id, shares in sessions.items()
        ),
        newest=tuple(_newest(newest)),
    )


def _newest(turns: list[TurnSpent]) -> list[TurnSpent]:
    return sorted(turns, key=lambda turn: turn.started_at, reverse=True)[:USAGE_TURNS_MAX]


def _turn_spent(one: TurnUsed, shares: _Shares) -> TurnSpent:
    turn = one.turn
    return TurnSpent(
        id=turn.id, session_id=one.session_id, state=turn.state, started_at=turn.started_at,
        spent=_told(shares),
    )  # fmt: skip


def _shares(one: TurnUsed, knows: Knows) -> dict[str, _Share]:
    """Return what a turn used, by model.

    The calls that were answered are in its steps, one by one. The rest of its usage is of calls
    that failed, and of summaries: how many they were, nobody knows.
    """
    day = day_of(one.turn.ended_at or one.turn.started_at)
    shares: dict[str, _Share] = {}
    rest = dict(one.turn.usage)
    for step in one.steps:
        if step.usage == Usage():
            continue
        prices = _prices(knows, step.model)
        share = _Share(step.usage, paid(step.usage, prices, day, one_call=True))
        shares[step.model] = shares.get(step.model, _Share()) + share
        if step.model in rest:
            rest[step.model] = _less(rest[step.model], step.usage)
    for model, usage in rest.items():
        if usage != Usage():
            share = _Share(usage, paid(usage, _prices(knows, model), day, one_call=False))
            shares[model] = shares.get(model, _Share()) + share
    return shares


def _titling(record: Metadata, knows: Knows) -> _Share:
    """Return what the title of a conversation used: one call, of no turn."""
    prices = _prices(knows, record.title_model)
    used, day = record.title_usage, day_of(record.titled_at)
    return _Share(used, paid(used, prices, day, one_call=True))


def _prices(knows: Knows, model: str) -> ModelPrices | None:
    return knows(model).facts.prices


def _less(usage: Usage, other: Usage) -> Usage:
    return Usage(
        **{
            name: max(0, getattr(usage, name) - getattr(other, name))
            for name in Usage.__struct_fields__
        }
    )


def _fill(steps: tuple[StepInfo, ...], knows: Knows) -> ContextFill | None:
    """Return how full the context was in the newest call: what it read, and what it said."""
    step = next((step for step in steps if step.usage != Usage()), None)
    if step is None:
        return None
    window = knows(step.model).facts.window
    return ContextFill(model=step.model, tokens=step.usage.total, window=window)


def _add(total: dict[str, _Share], shares: _Shares) -> None:
    for model, share in shares.items():
        total[model] = total.get(model, _Share()) + share


def _told(shares: _Shares) -> Spent:
    whole = sum(shares.values(), _Share())
    models = [
        ModelUsage(model=model, usage=share.usage, cost=cost(share.paid))
        for model, share in shares.items()
    ]
    return Spent(usage=whole.usage, cost=cost(whole.paid), models=tuple(models))
