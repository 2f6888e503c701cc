"""Answering approvals: the first answer wins, and a rule for the session answers its likes."""

from __future__ import annotations

from collections.abc import Iterable

from vaala import limits
from vaala.changes import Change, item_change, now_ms, replace
from vaala.checks import storable
from vaala.dao.state import SessionState
from vaala.requests import AnswerApproval
from vaala_protocol.errors import BadRequest, NotFound, NotPending
from vaala_protocol.items import Approval, ApprovalAnswer, ApprovalOption, ToolCall


def answer_changes(
    state: SessionState, answer: AnswerApproval
) -> tuple[list[Change], list[tuple[str, ToolCall]]]:
    """Return the changes of an answer, and the decided calls by the id of their approval.

    An answer for the session also settles pending approvals that offer the same rule: identical
    requests, never ones that are merely alike (case H3-7). Raises `NotFound`, `NotPending` and
    `BadRequest`.
    """
    approval = _pending(state, answer.approval_id)
    option = _option(approval, answer.option)
    changes: list[Change] = []
    decided: list[tuple[str, ToolCall]] = []
    for other, choice in [(approval, option), *_alike(state, approval, option)]:
        call = state.open.get(other.tool_call_id)
        if not isinstance(call, ToolCall):
            raise NotFound(f"approval {other.id} is about a call that is not there")
        after = _decide(call, choice, answer)
        given = ApprovalAnswer(
            option=choice.id, by=answer.by, reason=answer.reason, interrupt=answer.interrupt
        )
        storable(given, "the answer", limits.REASON_BYTES_MAX)
        done = replace(other, state="answered", answer=given, completed_at=now_ms())
        changes += [item_change(done, other), item_change(after, call)]
        decided.append((other.id, replace(after, rev=call.rev + 1)))
    return changes, decided


def _pending(state: SessionState, approval_id: str) -> Approval:
    approval = state.open.get(approval_id)
    if not isinstance(approval, Approval):
        raise NotPending(f"approval {approval_id} is not pending")
    if approval.state != "pending":
        by = f" by {approval.answer.by}" if approval.answer else ""
        raise NotPending(f"approval {approval_id} was settled before{by}: {approval.state}")
    return approval


def _option(approval: Approval, option_id: str) -> ApprovalOption:
    for option in approval.options:
        if option.id == option_id:
            return option
    known = ", ".join(option.id for option in approval.options)
    raise BadRequest(f"no option {option_id!r}; the options are: {known}")


def _alike(
    state: SessionState, approval: Approval, option: ApprovalOption
) -> Iterable[tuple[Approval, ApprovalOption]]:
    if option.scope == "call" or option.rule is None:
        return
    for other in list(state.open.values()):
        if isinstance(other, Approval) and other.state == "pending" and other.id != approval.id:
            for choice in other.options:
                if (choice.kind, choice.rule) == (option.kind, option.rule):
                    yield other, choice
                    break


def _decide(call: ToolCall, option: ApprovalOption, answer: AnswerApproval) -> ToolCall:
    now = now_ms()
    if option.kind in ("allow_once", "allow_always"):
        return replace(call, state="running", started_at=now)
    reason = f"Refused by {answer.by}." + (f" {answer.reason}" if answer.reason else "")
    return replace(call, state="denied", reason=reason, completed_at=now)
