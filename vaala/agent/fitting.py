"""Where a history is cut, so that it fits; all sizes are bytes of encoded messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from msgspec import Struct

from vaala.agent import limits
from vaala.dao.state import Head
from vaala_protocol.calls import AgentDetails, CommandDetails
from vaala_protocol.items import (
    ContextSummary,
    Instructions,
    Item,
    PeerMessage,
    Plan,
    Skill,
    ToolCall,
    UserMessage,
)


class Compaction(Struct, frozen=True):
    """When and how far a history is made shorter; shares of the context window."""

    auto: bool = True
    """Let the model write a summary of what is left out; otherwise it is left out without one."""
    at: float = 0.9
    """From this size on."""
    aim: float = 0.6
    """Down to this size."""


class SizedStep(Struct, frozen=True):
    """A closed step that is in requests."""

    turn_id: str | None
    items: tuple[Item, ...]
    size: int
    short: int
    """Its size with the results of its calls shortened."""

    @property
    def last_at(self) -> int:
        return max(item.at for item in self.items)


def upto_whole(steps: Sequence[SizedStep], running: str | None, whole_bytes: int) -> int:
    """Return up to which place results are shortened, so that about ``whole_bytes`` stay whole.

    Those of the last step of the turn that is ``running`` do in any case: the model waits for them.
    """
    whole = 0
    for number, step in reversed(list(enumerate(steps))):
        whole += step.size
        awaited = number == len(steps) - 1 and step.turn_id == running
        if whole > whole_bytes and not awaited:
            return step.last_at
    return 0


def saved_by(steps: Iterable[SizedStep], upto: int) -> int:
    """Return what shortening the results up to a place saves."""
    return sum(step.size - step.short for step in steps if step.last_at <= upto)


def borders(steps: Sequence[SizedStep], running: str | None) -> tuple[list[int], list[int]]:
    """Return after how many steps a cut may fall: on borders of turns, and of steps.

    Each from the one that leaves most. The step borders are those in the turn that is
    ``running``, whose last step always stays: its results have not been answered yet.
    """
    count = len(steps)
    turns = [
        number
        for number in range(1, count + 1)
        if number == count or steps[number].turn_id != steps[number - 1].turn_id
    ]
    if count and running is not None and steps[-1].turn_id == running:
        start = turns[-2] if len(turns) > 1 else 0
        return turns[:-1], list(range(start + 1, count))
    return turns, []


def first_that_fits(
    steps: Sequence[SizedStep], running: str | None, upto: int, room_bytes: int
) -> int:
    """Return how many steps are left out so that the others fit, as far as that is possible.

    Results up to ``upto`` count as shortened. 0: nothing can be left out.
    """
    sizes = [step.short if step.last_at <= upto else step.size for step in steps]
    after = [*accumulate(sizes[::-1], initial=0)][::-1]
    turns, inside = borders(steps, running)
    for number in (*turns, *inside):
        if after[number] <= room_bytes:
            return number
    return max((*turns, *inside), default=0)


def kept_of(candidates: Iterable[Item], head: Head, running: str | None) -> tuple[int, ...]:
    """Return the places of what stays of items that are left out: never left to a summary.

    That is what a person asked for first and last, all they said in the turn that is running,
    rules and skills, the plan, and what still runs. ``candidates``: what is left out now, and what
    stayed until now.
    """
    items = sorted(candidates, key=lambda item: item.at)
    said = [item for item in items if _asks(item)]
    own = [item for item in said if running is not None and item.turn_id == running]
    chosen: dict[object, Item] = {item.at: item for item in (*said[:1], *said[-limits.LAST_KEPT :])}
    chosen |= {item.at: item for item in (*own[:1], *own[-limits.MESSAGES_KEPT_MAX :])}
    latest: dict[object, Item] = {}
    for item in items:
        if (key := _state_key(item, head)) is not None:
            latest.pop(key, None)
            latest[key] = item
    for item in [*latest.values()][-limits.STATES_KEPT_MAX :]:
        chosen[item.at] = item
    return tuple(sorted(item.at for item in chosen.values()))


def _asks(item: Item) -> bool:
    if isinstance(item, PeerMessage):
        return item.turn_state is None
    return isinstance(item, UserMessage)


def _state_key(item: Item, head: Head) -> object:
    """Return what an item is the newest word on; None for what a summary may tell."""
    match item:
        case Instructions(source=source):
            return "instructions", source
        case Skill(name=name):
            return "skill", name
        case Plan():
            return "plan"
        case ContextSummary():
            return "summary", item.at
        case ToolCall(details=CommandDetails(command_id=str(id))):
            return ("command", id) if any(id == one.id for one in head.commands) else None
        case ToolCall(details=AgentDetails(action="spawn", session_id=str(id))):
            return ("agent", id) if id in head.children else None
        case _:
            return None
