"""Questions of a conversation, put to the person by its clients."""

from __future__ import annotations

import logging
from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.services.fakes import FakeElicitor
from vaala.services.base import Offer
from vaala.services.elicitation import Elicitations
from vaala.services.registry import Services
from vaala_protocol.errors import NotPending
from vaala_protocol.items import Question

WHICH = Question(id="q1", at=1, created_at=1, text="Which one?", choices=("a", "b"))


asking: ContextVar[str] = ContextVar("asking", default="nobody")


class Answers:
    def __init__(self) -> None:
        self.context: list[str] = []
        self.given: list[tuple[str, str | None, str]] = []
        self.error: Exception | None = None

    async def answer(self, question_id: str, answer: str | None, by: str) -> None:
        await trio.lowlevel.checkpoint()
        self.given.append((question_id, answer, by))
        self.context.append(asking.get())
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("answer", ["a", None])
async def test_an_answer_comes_back_by_the_id_of_the_question(
    answer: str | None, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    services, answers = Services(), Answers()
    questions = Elicitations(nursery, services, answers.answer)
    with services.offer(Offer("Zed", elicitor=FakeElicitor(answer))):
        questions.ask(WHICH)
        await wait_all_tasks_blocked()
    assert answers.given == [("q1", answer, "Zed")]
    questions.withdraw("q1")


async def test_a_question_that_is_settled_elsewhere_is_taken_back(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    services, answers, elicitor = Services(), Answers(), FakeElicitor()
    elicitor.manner.silent = True
    questions = Elicitations(nursery, services, answers.answer)
    with services.offer(Offer("Zed", elicitor=elicitor)):
        questions.ask(WHICH)
        questions.ask(WHICH)
        await wait_all_tasks_blocked()
        assert elicitor.manner.asked == ["Which one?"], "once"
        questions.withdraw("q1")
        questions.withdraw("another")
        await wait_all_tasks_blocked()
        assert elicitor.manner.cancelled == ["Which one?"]
        elicitor.manner.silent = False
        questions.ask(WHICH)
        await wait_all_tasks_blocked()
    assert answers.given == [("q1", "yes", "Zed")]


@pytest.mark.parametrize(
    ("error", "level"), [(NotPending("settled"), logging.INFO), (OSError("bug"), logging.ERROR)]
)
async def test_an_answer_that_comes_to_nothing_harms_nobody(
    error: Exception,
    level: int,
    autojump_clock: MockClock,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    services, answers = Services(), Answers()
    answers.error = error
    questions = Elicitations(nursery, services, answers.answer)
    with services.offer(Offer("Zed", elicitor=FakeElicitor())), caplog.at_level(logging.INFO):
        questions.ask(WHICH)
        await wait_all_tasks_blocked()
    assert [record.levelno for record in caplog.records] == [level]
    assert len(answers.given) == 1


async def test_an_answer_is_nobody_s_own_request(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    """The session that asked waits for nothing: its answer comes from outside."""
    services, answers = Services(), Answers()
    questions = Elicitations(nursery, services, answers.answer)
    with services.offer(Offer("Zed", elicitor=FakeElicitor())):
        token = asking.set("session")
        questions.ask(WHICH)
        asking.reset(token)
        await wait_all_tasks_blocked()
    assert answers.context == ["nobody"]
