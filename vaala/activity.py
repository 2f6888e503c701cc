"""What is alive in a conversation, as `vaala status` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaala.conversation import Conversation
    from vaala.session import Session
    from vaala_protocol.methods.runtime import ConversationActivity, SessionStatus


def activity_of(conversation: Conversation) -> ConversationActivity:
    """Return an open conversation with its live sessions, the root first."""
    from vaala_protocol.methods.runtime import ConversationActivity

    info = conversation.info
    return ConversationActivity(
        id=info.id,
        title=info.title,
        status=info.status,
        subscribers=conversation.stream.subscribers,
        sessions=tuple(_status_of(session) for session in conversation.sessions.values()),
    )


def _status_of(session: Session) -> SessionStatus:
    from vaala_protocol.methods.runtime import SessionStatus

    turn = session.turn
    return SessionStatus(
        id=session.id,
        agent=session.info.agent,
        parent=session.info.parent,
        turn_id=None if turn is None else turn.id,
        turn_started_at=None if turn is None else turn.info.started_at,
        steps=0 if turn is None else turn.step_number,
        waits=session.waits.snapshot(),
        commands=session.command_infos,
        queued=len(session.state.queue),
        unsaved=session.unsaved,
    )
