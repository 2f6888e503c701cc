"""What turns used, as their session's stream says it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from msgspec import Struct

from vaala.dao.entries import Entry, merged
from vaala.dao.walk import Stream, Walk
from vaala_protocol.base import Malformed, from_json
from vaala_protocol.state import StepInfo, TurnInfo


class TurnUsed(Struct, frozen=True):
    session_id: str
    turn: TurnInfo
    """Its usage is empty while it runs, and for ever when the runtime ended before it did."""
    steps: tuple[StepInfo, ...]
    """Newest first. Their usage is that of the calls that were answered."""


async def turns_used(
    stream: Stream, session_id: str, since: int | None
) -> AsyncGenerator[TurnUsed]:
    """Yield turns, newest first, down to the first that ended before ``since`` (milliseconds).

    Holds the steps of one turn at a time. What cannot be read is passed over.
    """
    walk = Walk(stream, None, back=True)
    later: dict[tuple[str, ...], list[Entry]] = {}
    steps: list[StepInfo] = []
    while (stored := await walk.next()) is not None:
        entry = stored.entry
        kind = _KINDS.get(entry.get("t", ""))
        if kind is None:
            continue
        key = _key(entry)
        if "startedAt" not in entry:
            later.setdefault(key, []).append(dict(entry))
            continue
        whole = dict(entry)
        for change in reversed(later.pop(key, [])):
            whole = merged(whole, change)
        try:
            found = from_json(whole, kind)
        except Malformed:
            continue
        if isinstance(found, StepInfo):
            steps.append(found)
            continue
        assert isinstance(found, TurnInfo)
        if since is not None and found.ended_at is not None and found.ended_at < since:
            return
        yield TurnUsed(session_id, found, tuple(step for step in steps if step.turn_id == found.id))
        steps = []


_KINDS: dict[str, type[TurnInfo] | type[StepInfo]] = {"turn": TurnInfo, "step": StepInfo}


def _key(entry: Any) -> tuple[str, ...]:
    """Return what the entries of one turn, or of one step, have in common."""
    return tuple(str(entry.get(name)) for name in ("t", "id", "turnId", "number"))
