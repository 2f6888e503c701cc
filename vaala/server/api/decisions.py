"""``approval/`` and ``question/``: the first answer wins, the others are refused."""

from __future__ import annotations

from vaala.handle import ConversationHandle
from vaala.server.api.caller import Caller
from vaala.server.api.method import Method, decision_lane, method
from vaala_protocol.methods import decisions as wire
from vaala_protocol.methods.base import Done


async def answer_approval(caller: Caller, params: wire.ApprovalAnswerParams) -> Done:
    talk = ConversationHandle(caller.api.runtime, params.conversation_id)
    await talk.answer_approval(
        params.approval_id,
        params.option,
        by=params.by or caller.name,
        reason=params.reason,
        interrupt=params.interrupt,
    )
    return Done()


async def answer_question(caller: Caller, params: wire.QuestionAnswerParams) -> Done:
    talk = ConversationHandle(caller.api.runtime, params.conversation_id)
    await talk.answer_question(params.question_id, params.answer, by=params.by or caller.name)
    return Done()


METHODS: tuple[Method, ...] = (
    method(wire.ApprovalAnswerParams, answer_approval, decision_lane),
    method(wire.QuestionAnswerParams, answer_question, decision_lane),
)
