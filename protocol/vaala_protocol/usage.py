"""What was used and what it cost: of a turn, a session, a conversation, and all of them."""

from __future__ import annotations

from vaala_protocol.base import Value
from vaala_protocol.prices import Cost
from vaala_protocol.settings import Usage
from vaala_protocol.state import TurnState


class ModelUsage(Value, frozen=True, kw_only=True):
    """All calls of one model, those that failed included."""

    model: str
    usage: Usage
    cost: Cost | None = None
    """None: no price is known."""


class Spent(Value, frozen=True, kw_only=True):
    usage: Usage = Usage()
    cost: Cost | None = None
    """None: no price is known of any model. Where one is missing, ``atLeast`` says so."""
    models: tuple[ModelUsage, ...] = ()


class TurnSpent(Value, frozen=True, kw_only=True):
    id: str
    session_id: str
    state: TurnState
    started_at: int
    spent: Spent


class ContextFill(Value, frozen=True, kw_only=True):
    """How full the context was in the newest call that was answered. It is no sum: every call of a
    turn is paid for, and each has the whole context again."""

    model: str
    tokens: int
    window: int | None = None
    """None: not known."""


class SessionSpent(Value, frozen=True, kw_only=True):
    id: str
    spent: Spent
    context: ContextFill | None = None


class ConversationSpent(Value, frozen=True, kw_only=True):
    """Turns that had ended before the conversation was made, as in a fork or an import, are left
    out: they were paid for where they ran."""

    id: str
    title: str = ""
    updated_at: int = 0
    turns: int = 0
    spent: Spent = Spent()
    sessions: tuple[SessionSpent, ...] = ()
    newest: tuple[TurnSpent, ...] = ()
    """The newest turns, newest first."""


class UsagePage(Value, frozen=True, kw_only=True):
    """Conversations in which something was used, newest first, without their sessions and turns."""

    conversations: tuple[ConversationSpent, ...]
    cursor: str | None = None
