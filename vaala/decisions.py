"""What waits for a person: approvals and questions are answered by id, and the first answer wins.

Both are items of the turn that asks. They die with it, and with the process; a late answer is told
so. How an answer arrives does not matter: a client's list, an editor's dialog, another program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vaala import limits
from vaala.approvals import answer_changes
from vaala.changes import item_change, now_ms, replace
from vaala.checks import storable
from vaala.requests import AnswerApproval, AnswerQuestion
from vaala.text import scrub
from vaala_protocol.errors import NotPending
from vaala_protocol.items import Approval, Question

if TYPE_CHECKING:
    from vaala.session import Session
    from vaala.turn import Turn


async def answer_approval(session: Session, answer: AnswerApproval) -> None:
    """Decide a call, and its identical likes when the answer is for the session.

    Raises `NotPending`, `BadRequest`, `NotDurable`.
    """
    turn = _turn(session, f"approval {answer.approval_id}")
    changes, decided = answer_changes(session.state, answer)
    await session.write(changes, keep=False)
    for approval_id, call in decided:
        turn.decided(approval_id, call)
    if answer.interrupt:
        session.interrupt()


async def keep_rule(session: Session, approval_id: str, option_id: str) -> None:
    """Write the rule of an answer that holds for good into the configuration; nothing for others.

    Durable on return. Raises what `Definitions.keep_rule` raises.
    """
    approval = session.state.open.get(approval_id)
    keep = session.around.definitions.keep_rule
    if not isinstance(approval, Approval) or approval.state != "pending" or keep is None:
        return
    for option in approval.options:
        if option.id == option_id and option.scope == "config" and option.rule is not None:
            await keep(option.rule)


async def answer_question(session: Session, answer: AnswerQuestion) -> None:
    """Answer a question; None: the person does not want to.

    Raises `NotPending`, `BadRequest`, `NotDurable`.
    """
    turn = _turn(session, f"question {answer.question_id}")
    question = session.state.open.get(answer.question_id)
    if not isinstance(question, Question):
        raise NotPending(f"question {answer.question_id} is not pending")
    if question.state != "pending":
        by = f" by {question.answered_by}" if question.answered_by else ""
        raise NotPending(f"question {question.id} was settled before{by}: {question.state}")
    text = None if answer.answer is None else scrub(answer.answer)
    storable((text, answer.by), "the answer", limits.REASON_BYTES_MAX)
    done = replace(
        question, state="answered", answer=text, answered_by=answer.by, completed_at=now_ms()
    )
    change = item_change(done, question)
    await session.write([change], keep=False)
    turn.answered(replace(done, rev=question.rev + 1))


async def withdraw_question(session: Session, question_id: str) -> None:
    """Settle a question of the running turn that nobody waits for any more.

    Raises `NotDurable`; the change is kept then, and written when that is possible.
    """
    turn = session.turn
    question = None if turn is None else turn.items.get(question_id)
    if turn is None or not isinstance(question, Question) or question.state != "pending":
        return
    done = replace(question, state="withdrawn", completed_at=now_ms())
    turn.items[question_id] = replace(done, rev=question.rev + 1)
    await session.write([item_change(done, question)], keep=True)


def _turn(session: Session, what: str) -> Turn:
    """Return the turn that has asked; one that is on its way out takes no answer."""
    if session.turn is None or session.turn.closing:
        raise NotPending(f"{what} is not pending: its turn is ending")
    return session.turn
