"""Pending input: what waits, what is held, and what a turn or a step takes.

One queue per session, ordered by place. A person's message starts a turn of its own; what the
runtime has to tell (ended commands, results of agents) goes along with the next step. After an
interrupt or a restart the queue is held; the next send or a resume releases it in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vaala import limits
from vaala.changes import Change, input_change, item_change, item_of, now_ms, replace
from vaala.checks import checked_output_schema, checked_settings, storable
from vaala.dao.state import SessionState
from vaala.requests import ChildDone, Send, result_text
from vaala.text import is_blank, scrub
from vaala_protocol.base import encode
from vaala_protocol.content import Content, TextContent
from vaala_protocol.errors import BadRequest, NotFound, NotPending, Overloaded
from vaala_protocol.ids import new_id
from vaala_protocol.items import Item
from vaala_protocol.state import InputInfo, InputSource, PeerInput, TurnResult, UserInput


def checked_content(content: tuple[Content, ...]) -> tuple[Content, ...]:
    """Return content that can be stored; raises `BadRequest` for what is empty or too large."""
    clean = tuple(
        TextContent(text=scrub(block.text)) if isinstance(block, TextContent) else block
        for block in content
    )
    if all(isinstance(block, TextContent) and is_blank(block.text) for block in clean):
        raise BadRequest("the message is empty")
    way_out = "; put it in a file and name the file"
    return storable(clean, "the message", limits.INPUT_BYTES_MAX, way_out)


def known(state: SessionState, send: Send) -> InputInfo | None:
    """Return the input that this client id named before: a retry finds its result."""
    input_id = state.client_ids.get(send.client_id)
    if input_id is None:
        return None
    return state.queue.get(input_id) or InputInfo(
        id=input_id,
        client_id=send.client_id,
        source=send.source,
        created_at=now_ms(),
        state="consumed",
    )


def accepted(state: SessionState, send: Send) -> InputInfo:
    """Return the new input that a send makes; raises `BadRequest`, `Overloaded`."""
    source = send.source
    if isinstance(source, UserInput):
        source = UserInput(content=checked_content(source.content))
    if len(state.queue) >= limits.QUEUE_INPUTS_MAX:
        raise Overloaded(f"{len(state.queue)} messages wait already; withdraw some or wait")
    settings = None if send.settings is None else checked_settings(send.settings)
    schema = None if send.output_schema is None else checked_output_schema(send.output_schema)
    client_id = storable(send.client_id, "the client id", limits.CLIENT_ID_BYTES_MAX)
    new = told(state, client_id, source)
    return replace(new, delivery=send.delivery, settings=settings, output_schema=schema)


def told(state: SessionState, client_id: str, source: InputSource) -> InputInfo:
    """Return a new input at the end of the queue."""
    return InputInfo(
        id=new_id(),
        client_id=client_id,
        source=source,
        created_at=now_ms(),
        place=state.head.last_place + 1,
    )


def result_of_child(done: ChildDone) -> PeerInput:
    return PeerInput(
        from_session=done.session_id,
        content=(TextContent(text=result_text(TurnResult(turn=done.turn, text=done.text))),),
        cause=done.turn.id,
        turn_state=done.turn.state,
    )


def edited(
    state: SessionState, input_id: str, content: tuple[Content, ...]
) -> tuple[InputInfo, InputInfo]:
    """Return an input as it is and as it becomes; only a person's own words can be changed."""
    waiting = find_waiting(state, input_id)
    if not isinstance(waiting.source, UserInput):
        raise BadRequest(f"input {input_id} was not written by a person")
    return waiting, replace(waiting, source=UserInput(content=checked_content(content)))


def find_waiting(state: SessionState, input_id: str) -> InputInfo:
    """Return an input that has not been taken; raises `NotPending`, `NotFound`."""
    if (waiting := state.queue.get(input_id)) is not None:
        return waiting
    if input_id in state.client_ids.values():
        raise NotPending(f"input {input_id} was taken or withdrawn before")
    raise NotFound(f"no input {input_id} in this session")


def released(state: SessionState) -> list[Change]:
    """Return the changes that make the held inputs wait again."""
    return [
        input_change(state.session_id, replace(held, state="waiting"), held)
        for held in state.pending
        if held.state == "held"
    ]


def held(state: SessionState, ids: Iterable[str]) -> list[Change]:
    """Return the changes that hold those of ``ids`` that still wait."""
    return [
        input_change(state.session_id, replace(state.queue[id], state="held"), state.queue[id])
        for id in ids
        if id in state.queue and state.queue[id].state == "waiting"
    ]


def taken_back(state: SessionState, session_id: str) -> list[Change]:
    """Return the changes that withdraw what waits from a child: it was handed over elsewhere."""
    return [
        input_change(state.session_id, replace(waiting, state="withdrawn"), waiting)
        for waiting in state.pending
        if isinstance(waiting.source, PeerInput) and waiting.source.from_session == session_id
    ]


def for_turn(pending: Iterable[InputInfo]) -> list[InputInfo]:
    """Return what starts the next turn: everything up to the first message of a person.

    Nothing without such a message: what the runtime has to tell does not start a turn. Bounded in
    bytes: of what comes before the message, the rest goes along with the next step.
    """
    before: list[InputInfo] = []
    for waiting in pending:
        if waiting.state != "waiting":
            continue
        if isinstance(waiting.source, UserInput):
            room = limits.INPUTS_TAKEN_BYTES_MAX - _size(waiting)
            return [*_fitting(before, room), waiting]
        before.append(waiting)
    return []


def starting(
    state: SessionState, pending: Iterable[InputInfo]
) -> tuple[list[InputInfo], list[Change]]:
    """Return what starts the next turn once ``pending`` is released, and what else that changes."""
    free = [replace(waiting, state="waiting") for waiting in pending]
    taken = for_turn(free)
    changes = [
        input_change(state.session_id, waiting, state.queue.get(waiting.id))
        for waiting in free
        if waiting not in taken and waiting != state.queue.get(waiting.id)
    ]
    return taken, changes


def for_step(pending: Iterable[InputInfo]) -> list[InputInfo]:
    """Return what the running turn takes before its next model call; bounded in bytes."""
    due = [
        waiting
        for waiting in pending
        if waiting.state == "waiting"
        and (waiting.delivery == "steer" or not isinstance(waiting.source, UserInput))
    ]
    return _fitting(due, limits.INPUTS_TAKEN_BYTES_MAX) or due[:1]


def _fitting(inputs: Iterable[InputInfo], bytes_max: int) -> list[InputInfo]:
    """Return the first ones that fit, in order."""
    taken: list[InputInfo] = []
    for waiting in inputs:
        bytes_max -= _size(waiting)
        if bytes_max < 0:
            break
        taken.append(waiting)
    return taken


def _size(waiting: InputInfo) -> int:
    return len(encode(waiting.source))


def steers(pending: Iterable[InputInfo]) -> bool:
    """Tell whether a person's steer waits, which keeps a turn going."""
    return any(
        waiting.state == "waiting"
        and waiting.delivery == "steer"
        and isinstance(waiting.source, UserInput)
        for waiting in pending
    )


def consumed(
    state: SessionState,
    taken: Iterable[InputInfo],
    next_at: Callable[[], int],
    *,
    turn_id: str,
    step: int,
) -> tuple[list[Change], tuple[Item, ...]]:
    """Return the changes that make history of inputs, in one append, and the new items."""
    changes: list[Change] = []
    items: list[Item] = []
    for waiting in taken:
        known = state.queue.get(waiting.id)
        changes.append(input_change(state.session_id, replace(waiting, state="consumed"), known))
        item = item_of(waiting, id=new_id(), at=next_at(), turn_id=turn_id, step=step)
        items.append(item)
        changes.append(item_change(item))
    return changes, tuple(items)


def moved(state: SessionState, input_id: str, before: str | None) -> list[Change]:
    """Return the changes that put an input before another, or at the end."""
    waiting = find_waiting(state, input_id)
    order = [other for other in state.pending if other.id != input_id]
    index = len(order)
    if before == input_id:
        return []
    if before is not None:
        index = order.index(find_waiting(state, before))
    order.insert(index, waiting)
    places = sorted(other.place for other in order)
    return [
        input_change(state.session_id, replace(other, place=place), other)
        for other, place in zip(order, places, strict=True)
        if other.place != place
    ]
