"""``approval/`` and ``question/``: what waits for a person. The first answer wins."""

from __future__ import annotations

from vaala_protocol.base import Value
from vaala_protocol.methods.base import Done, Request


class ApprovalAnswerParams(Value, Request[Done], frozen=True, kw_only=True):
    """Decide a pending approval of any session; ``not_pending`` for a late answer."""

    method = "approval/answer"
    result = Done

    conversation_id: str
    approval_id: str
    option: str
    """The id of one of its options."""
    by: str = ""
    """Who decides; left out: the name of the client."""
    reason: str = ""
    interrupt: bool = False
    """End the turn, too."""


class QuestionAnswerParams(Value, Request[Done], frozen=True, kw_only=True):
    """Answer a pending question; ``not_pending`` for a late answer."""

    method = "question/answer"
    result = Done

    conversation_id: str
    question_id: str
    answer: str | None
    """None: the person does not want to answer."""
    by: str = ""
    """Who answers; left out: the name of the client."""
