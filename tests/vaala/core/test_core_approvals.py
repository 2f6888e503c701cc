"""Answers to approvals: the first one wins, and a rule settles exactly its likes."""

from __future__ import annotations

import pytest

from tests.vaala.core.items import call
from tests.vaala.core.states import apply, folded, turn_changes
from vaala.approvals import answer_changes
from vaala.changes import replace
from vaala.dao.state import SessionState
from vaala.requests import AnswerApproval
from vaala_protocol.errors import BadRequest, NotPending
from vaala_protocol.items import Approval, ApprovalOption, ToolCall

ONCE = ApprovalOption(id="once", kind="allow_once", label="Allow")
NO = ApprovalOption(id="no", kind="reject_once", label="Refuse")


def always(rule: str) -> ApprovalOption:
    return ApprovalOption(
        id="always", kind="allow_always", label="Allow", scope="session", rule=rule
    )


def asked(*rules: str) -> tuple[SessionState, list[Approval], list[ToolCall]]:
    """Return a state where calls wait, each for an approval that offers a rule."""
    calls = [call(at, "waiting") for at in range(1, len(rules) + 1)]
    approvals = [
        Approval(
            id=f"p{number}", at=10 + number, created_at=1, tool_call_id=one.id, digest="d",
            options=(ONCE, always(rule), NO),
        )
        for number, (one, rule) in enumerate(zip(calls, rules, strict=True))
    ]  # fmt: skip
    return folded(turn_changes(*calls, *approvals)), approvals, calls


def answer(state: SessionState, approval: str, option: str, reason: str = "") -> list[str]:
    """Answer and apply; return the approvals that were decided by it."""
    changes, decided = answer_changes(state, AnswerApproval(approval, option, "ann", reason))
    apply(state, changes)
    for _, after in decided:
        assert state.open[after.id] == after, "the turn is given the call as it is written"
    return [approval_id for approval_id, _ in decided]


def state_of(state: SessionState, item: ToolCall) -> str:
    found = state.open[item.id]
    assert isinstance(found, ToolCall)
    return found.state


def test_allowing_once_lets_one_call_run() -> None:
    state, approvals, calls = asked("git status", "git status")
    assert answer(state, "p0", "once") == ["p0"]
    assert [state_of(state, one) for one in calls] == ["running", "waiting"]
    settled = state.open[approvals[0].id]
    assert isinstance(settled, Approval)
    assert settled.answer is not None
    assert (settled.state, settled.answer.by, settled.answer.option) == ("answered", "ann", "once")
    assert state.head.grants == ()


def test_the_first_answer_wins() -> None:
    state, _, _ = asked("git status")
    answer(state, "p0", "no")
    with pytest.raises(NotPending, match="settled before by ann: answered"):
        answer(state, "p0", "once")
    with pytest.raises(NotPending, match="is not pending"):
        answer(state, "p9", "once")


def test_a_refusal_tells_by_whom_and_why() -> None:
    state, _, calls = asked("rm")
    answer(state, "p0", "no", "Too dangerous.")
    denied = state.open[calls[0].id]
    assert isinstance(denied, ToolCall)
    assert (denied.state, denied.reason) == ("denied", "Refused by ann. Too dangerous.")


def test_a_rule_settles_the_approvals_that_offer_it_and_no_others() -> None:
    state, _, calls = asked("git status", "git push", "git status")
    assert answer(state, "p0", "always") == ["p0", "p2"]
    assert [state_of(state, one) for one in calls] == ["running", "waiting", "running"]
    assert state.head.grants == ("git status",)


def test_an_approval_that_offers_a_rule_twice_is_settled_once() -> None:
    state, approvals, _ = asked("git status", "git status")
    twice = replace(approvals[1], options=(always("git status"), always("git status")))
    state.note_item(replace(twice, session_id=state.session_id, turn_id="turn", step=1))
    assert answer(state, "p0", "always") == ["p0", "p1"]


def test_an_option_that_was_not_offered() -> None:
    state, _, _ = asked("git status")
    with pytest.raises(BadRequest, match="the options are: once, always, no"):
        answer(state, "p0", "forever")
