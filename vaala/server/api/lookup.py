"""Finds what parameters name: the session of a conversation."""

from __future__ import annotations

from vaala.server.api.api import Api
from vaala.session import Session
from vaala_protocol.errors import NotFound
from vaala_protocol.methods.session import SessionParams


async def session_of(api: Api, params: SessionParams) -> Session:
    """Return the session that is named, the root's when none is, opened when it is not.

    Raises `NotFound` for a conversation that is not there and for a child that is not open.
    """
    conversation = await api.runtime.conversation(params.conversation_id)
    root = await conversation.root()
    if params.session_id is None or params.session_id == root.id:
        return root
    session = conversation.sessions.get(params.session_id)
    if session is None:
        raise NotFound(
            f"no session {params.session_id} is open in conversation {params.conversation_id}"
        )
    return session
