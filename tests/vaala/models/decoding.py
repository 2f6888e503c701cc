"""What a decoder makes of the pieces of a body."""

from __future__ import annotations

from collections.abc import Iterable

from vaala.models.base import ModelEvent, ModelFailure
from vaala.models.events import Decoder


def decoded(
    decoder: Decoder, pieces: Iterable[bytes]
) -> tuple[list[ModelEvent], ModelFailure | None]:
    """Return the events, those before a failure included, and the failure."""
    events: list[ModelEvent] = []
    try:
        for piece in pieces:
            for event in decoder.feed(piece):
                events.append(event)  # one by one: those before the failure count
        for event in decoder.end():
            events.append(event)
    except ModelFailure as failure:
        return events, failure
    return events, None
