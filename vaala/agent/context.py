"""What of a history is in requests: the lead that stands for what was left out, and the rest.

Pure, and a function of the items alone: whoever reads the same log sends the same request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from vaala.agent.said import line, said_by, text_block
from vaala.changes import replace
from vaala.models.base import UserSaid
from vaala.text import cut, scrub
from vaala_protocol.calls import AgentDetails, CommandDetails
from vaala_protocol.content import Content, TextContent, text_of
from vaala_protocol.items import ContextCut, ContextSummary, Item, Plan, ToolCall

ContextItem: TypeAlias = ContextSummary | ContextCut


class Context(Struct, frozen=True):
    """What an item's history is reduced to; the default leaves everything as it is."""

    at: int = 0
    """The place of the newest item that changed it."""
    covers: int = 0
    keeps: frozenset[int] = frozenset()
    lead: tuple[UserSaid, ...] = ()
    """Stands before all that is shown; empty when nothing is left out."""
    shortened: tuple[tuple[int, int], ...] = ()
    """Up to which place results are shortened, and to how many bytes."""

    def shown(self, items: Iterable[Item]) -> list[Item]:
        """Return those that are sent in their place; what is kept of the others is in the lead."""
        if not self.lead:
            return list(items)
        return [item for item in items if item.at > self.covers and item.at not in self.keeps]

    def result_of(self, call: ToolCall) -> tuple[Content, ...]:
        """Return a call's result as it is sent."""
        bounds = [size for upto, size in self.shortened if call.at <= upto]
        return shortened(call, min(bounds)) if bounds else call.result


def shortened(call: ToolCall, bytes_max: int) -> tuple[Content, ...]:
    """Return head and tail of a result, and where the rest is; a short one as it is."""
    text = scrub(text_of(call.result))
    only_text = all(isinstance(block, TextContent) for block in call.result)
    if only_text and len(text.encode()) <= bytes_max + _NOTE_BYTES:
        return call.result
    note = f"(shortened; read_file blob:{call.id} has the whole text)"
    return (text_block(f"{cut(text, bytes_max)}\n{note}"),)


_NOTE_BYTES = 128
"""What is not longer than this beyond the bound is not worth a note."""


def governing(items: Iterable[Item]) -> ContextItem | None:
    """Return the item that says what is left out: the one that covers most, of two the newest."""
    found = [item for item in items if isinstance(item, ContextItem) and _covers(item)]
    return max(found, key=lambda item: (_covers(item), item.at), default=None)


def context_of(items: Iterable[Item], kept: Iterable[Item]) -> Context:
    """Return the context after ``items``, in any order; ``kept`` has those that `governing` keeps.

    Items that are left out already may be missing: they change nothing. Of two with one place, as
    a damaged log may have them, the first is kept.
    """
    changes = [item for item in items if isinstance(item, ContextItem)]
    if not changes:
        return Context()
    at = max(item.at for item in changes)
    places = [
        (min(item.shortens, item.at), max(0, item.result_bytes))
        for item in sorted(changes, key=lambda item: item.at)
        if isinstance(item, ContextCut) and item.shortens > 0
    ]
    head = governing(changes)
    if head is None:
        return Context(at=at, shortened=tuple(places))
    keeps = frozenset(place for place in head.keeps if place < head.at)
    first = {item.at: item for item in reversed(list(kept)) if item.at in keeps}
    return Context(
        at=at,
        covers=_covers(head),
        keeps=keeps,
        lead=_lead(head, first.values()),
        shortened=tuple((upto, size) for upto, size in places if upto > _covers(head)),
    )


def _covers(item: ContextItem) -> int:
    return min(item.covers, item.at - 1)


def _lead(head: ContextItem, kept: Iterable[Item]) -> tuple[UserSaid, ...]:
    parts = [
        UserSaid(content)
        for item in sorted(kept, key=lambda item: item.at)
        if (content := kept_words(item, head.kept_bytes))
    ]
    own = (_summary(head),) if isinstance(head, ContextSummary) else ()
    return (line(_INTRO), *parts, *own, line(_OUTRO))


_INTRO = "(What was said earlier in this conversation is left out. What still counts of it:)"
_OUTRO = "(The conversation goes on from here.)"


def kept_words(item: Item, bytes_max: int) -> tuple[Content, ...]:
    """Return what is sent of an item that stays though it is covered; 0: whole."""
    match item:
        case ContextSummary():
            return _summary(item).content
        case Plan():
            steps = "\n".join(f"[{step.state}] {step.text}" for step in item.steps)
            return (text_block(f"The plan:\n{steps or '(empty)'}"),)
        case ToolCall(details=CommandDetails() as command):
            where = f"{command.command} (in {command.cwd})"
            text = f"The background command {command.command_id} was started: {where}"
            return (text_block(text),)
        case ToolCall(details=AgentDetails() as agent):
            text = f"The agent {agent.session_id} was started: {agent.task}"
            return (text_block(text),)
        case _:
            return _bounded(said_by(item), bytes_max)


def _summary(item: ContextSummary) -> UserSaid:
    return line(f"Summary of what is left out, written by a model:\n{item.text}")


def _bounded(content: Sequence[Content], bytes_max: int) -> tuple[Content, ...]:
    if not bytes_max:
        return tuple(content)
    return tuple(
        replace(block, text=cut(block.text, bytes_max)) if isinstance(block, TextContent) else block
        for block in content
    )
