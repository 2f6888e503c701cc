"""What a store answers page by page, beside the pages that clients see."""

from __future__ import annotations

from msgspec import Struct

from vaala_protocol.errors import BadRequest
from vaala_protocol.state import StepInfo, TurnInfo


def checked_limit(limit: int, most: int) -> int:
    """Return how many are wanted of one page; raises `BadRequest` for none or too many."""
    if not 1 <= limit <= most:
        raise BadRequest(f"limit must be 1 to {most:,}, not {limit}", field="limit")
    return limit


class TurnPage(Struct, frozen=True):
    """Turns, newest first."""

    turns: tuple[TurnInfo, ...]
    cursor: int | None
    """Pass it to get older ones; None: these were the oldest."""


class StepPage(Struct, frozen=True):
    """Steps, newest first."""

    steps: tuple[StepInfo, ...]
    cursor: int | None


class ReindexReport(Struct, frozen=True):
    conversations: int
    removed: int
    """Rows whose conversation is gone."""
    unreadable: tuple[str, ...]
    """Conversations that could not be read, by id, at most a hundred."""
    damaged: int
    """Conversations with a gap in a stream."""
