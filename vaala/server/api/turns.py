"""Finds a turn of a session, however long ago it was."""

from __future__ import annotations

from vaala.dao.store import SessionLog
from vaala.server.api.api import Api
from vaala.session_view import read_last_words
from vaala_protocol.errors import NotFound
from vaala_protocol.methods.session import SessionTurnParams
from vaala_protocol.state import TurnInfo, TurnResult


async def turn(api: Api, params: SessionTurnParams) -> TurnResult:
    conversation = await api.runtime.conversation(params.conversation_id)
    root = await conversation.root()
    session_id = params.session_id or root.id
    session = conversation.sessions.get(session_id)
    with conversation.reading():
        log = session.log if session else await conversation.log.open_session(session_id)
        found = await _find(log, params.turn_id)
        if found is None:
            raise NotFound(f"session {session_id} has no turn {params.turn_id}")
        return TurnResult(turn=found, text=await read_last_words(log, found.id))


async def _find(log: SessionLog, turn_id: str) -> TurnInfo | None:
    newest = log.state.head.turn
    if newest is not None and newest.id == turn_id:
        return newest
    cursor: int | None = None
    while True:
        page = await log.turns(cursor=cursor)
        for found in page.turns:
            if found.id == turn_id:
                return found
        # Ids begin with the time, so what is older than the one that is wanted comes too late.
        if page.cursor is None or any(found.id < turn_id for found in page.turns):
            return None
        cursor = page.cursor
