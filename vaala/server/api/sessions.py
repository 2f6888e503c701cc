"""``session/``: messages to an agent, its queue, its settings and its transcript."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from vaala.handle import ConversationHandle
from vaala.server import limits
from vaala.server.api.api import Api
from vaala.server.api.caller import Caller
from vaala.server.api.fitting import fitting_page, page_limit
from vaala.server.api.method import Method, Outcome, Urgent, conversation_lane, method, view
from vaala_protocol.methods import session as wire
from vaala_protocol.methods.base import Done
from vaala_protocol.pages import ItemPage
from vaala_protocol.public import public_page
from vaala_protocol.state import InputInfo, TurnInfo, TurnResult


def _talk(api: Api, params: wire.SessionParams) -> ConversationHandle:
    return ConversationHandle(api.runtime, params.conversation_id)


async def send(caller: Caller, params: wire.SessionSendParams) -> InputInfo:
    if params.environment is not None:
        caller.runs_in(params.environment)
    await caller.prepare(params.conversation_id)
    return await _talk(caller.api, params).send(
        params.content,
        delivery=params.delivery,
        client_id=params.client_id,
        settings=params.settings,
        output_schema=params.output_schema,
        session_id=params.session_id,
    )


async def interrupt(
    caller: Caller, params: wire.SessionInterruptParams
) -> wire.SessionInterruptResult:
    interrupted = await _talk(caller.api, params).interrupt(
        params.turn_id, session_id=params.session_id
    )
    return wire.SessionInterruptResult(interrupted=interrupted)


_BEGINS = wire.SessionSendParams | wire.SessionResumeParams | wire.SessionCompactParams
"""What may begin a turn."""


async def interrupt_behind(
    caller: Caller, params: wire.SessionInterruptParams, in_front: Sequence[object]
) -> wire.SessionInterruptResult:
    """Interrupt what came of messages that were sent before the interrupt, too.

    When nothing in front could begin a turn, then what runs by now was begun after the interrupt,
    by somebody else.
    """
    begun = [
        one for one in in_front if isinstance(one, _BEGINS) and _session(one) == _session(params)
    ]
    if not begun:
        return wire.SessionInterruptResult(interrupted=False)
    sent = [one.client_id for one in begun if isinstance(one, wire.SessionSendParams)]
    interrupted = await _talk(caller.api, params).interrupt(
        params.turn_id, session_id=params.session_id, sent=sent
    )
    return wire.SessionInterruptResult(interrupted=interrupted)


def _session(params: wire.SessionParams) -> str:
    return params.session_id or params.conversation_id  # the root's is the conversation's


async def resume(caller: Caller, params: wire.SessionResumeParams) -> Done:
    await caller.prepare(params.conversation_id)
    await _talk(caller.api, params).resume(session_id=params.session_id)
    return Done()


async def items(api: Api, params: wire.SessionItemsParams) -> ItemPage:
    page = await _talk(api, params).items(
        before=params.before,
        after=params.after,
        limit=page_limit(params.limit, limits.PAGE_ITEMS_MAX),
        session_id=params.session_id,
    )
    return fitting_page(public_page(page), forward=params.after is not None)


async def turn(api: Api, params: wire.SessionTurnParams) -> TurnResult:
    return await _talk(api, params).turn(params.turn_id, session_id=params.session_id)


async def edit_input(caller: Caller, params: wire.SessionEditInputParams) -> InputInfo:
    return await _talk(caller.api, params).edit_input(
        params.input_id, params.content, session_id=params.session_id
    )


async def withdraw_input(caller: Caller, params: wire.SessionWithdrawInputParams) -> InputInfo:
    return await _talk(caller.api, params).withdraw_input(
        params.input_id, session_id=params.session_id
    )


async def move_input(caller: Caller, params: wire.SessionMoveInputParams) -> Done:
    await _talk(caller.api, params).move_input(
        params.input_id, before=params.before, session_id=params.session_id
    )
    return Done()


async def compact(caller: Caller, params: wire.SessionCompactParams) -> TurnInfo:
    await caller.prepare(params.conversation_id)
    return await _talk(caller.api, params).compact(session_id=params.session_id)


async def configure(
    caller: Caller, params: wire.SessionConfigureParams
) -> wire.SessionConfigureResult:
    talk = _talk(caller.api, params)
    settings = await talk.configure(params.settings, session_id=params.session_id)
    return wire.SessionConfigureResult(settings=settings, options=())


async def with_options(
    caller: Caller, params: wire.SessionConfigureParams, found: wire.SessionConfigureResult
) -> wire.SessionConfigureResult:
    """Add what can be set; for that a server of models may have to be asked."""
    keys = None if caller.environment is None else caller.keys
    talk = _talk(caller.api, params)
    options = await talk.options(session_id=params.session_id, keys=keys)
    return replace(found, options=options)


def _interrupted(outcome: Outcome) -> bool:
    return isinstance(outcome, wire.SessionInterruptResult) and outcome.interrupted


URGENT = Urgent(_interrupted, interrupt_behind)
"""An interrupt waits for nothing; what it has overtaken is stopped in its turn."""

METHODS: tuple[Method, ...] = (
    method(wire.SessionSendParams, send, conversation_lane),
    Method(wire.SessionInterruptParams, interrupt, conversation_lane, urgent=URGENT),
    method(wire.SessionResumeParams, resume, conversation_lane),
    view(wire.SessionItemsParams, items),
    view(wire.SessionTurnParams, turn),
    method(wire.SessionCompactParams, compact, conversation_lane),
    method(wire.SessionEditInputParams, edit_input, conversation_lane),
    method(wire.SessionWithdrawInputParams, withdraw_input, conversation_lane),
    method(wire.SessionMoveInputParams, move_input, conversation_lane),
    Method(wire.SessionConfigureParams, configure, conversation_lane, rest=with_options),
)
