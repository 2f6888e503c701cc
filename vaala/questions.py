"""Asking a person: a question is an item of the step, and its call waits until it is answered."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from vaala.changes import item_change, now_ms
from vaala.requests import WithdrawQuestion
from vaala.text import first_line
from vaala_protocol.errors import NotDurable, Stopping
from vaala_protocol.ids import new_id
from vaala_protocol.items import Question

if TYPE_CHECKING:
    from vaala.turn import Turn


class _Waiting:
    """A place where a call waits until its question is answered."""

    __slots__ = ("answered", "question")

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.question: Question | None = None


class Questions:
    """The questions of one turn. Whoever watches sees them; the turn's end withdraws them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._waiting: dict[str, _Waiting] = {}

    async def ask(self, call_id: str, text: str, choices: tuple[str, ...] = ()) -> str | None:
        """Ask for a call, and wait until interrupted; None: the person does not want to answer.

        The question is durable before anybody sees it. Cancel: it is withdrawn, at once when only
        the call gives up, else with its turn.
        """
        turn, session = self._turn, self._turn.session
        question = Question(
            id=new_id(), at=session.next_at(), created_at=now_ms(), session_id=session.id,
            turn_id=turn.id, step=turn.step_number, tool_call_id=call_id,
            text=text, choices=choices,
        )  # fmt: skip
        turn.items[question.id] = question
        waiting = self._waiting[question.id] = _Waiting()
        try:
            await turn.record([item_change(question)])
            with session.waits.on("you", f"answer {first_line(text)}"):
                await waiting.answered.wait()
        except BaseException:
            await self._take_back(question.id)
            raise
        finally:
            del self._waiting[question.id]
        assert waiting.question is not None
        return waiting.question.answer

    async def _take_back(self, question_id: str) -> None:
        if self._turn.closing:
            return  # its end settles the question
        with trio.CancelScope(shield=True), suppress(NotDurable, Stopping):
            await self._turn.session.deliver(WithdrawQuestion(question_id))

    def answered(self, question: Question) -> None:
        """Take an answer that is written down already."""
        self._turn.items[question.id] = question
        # Nobody waits any more when the turn was interrupted while the answer was written down.
        if (waiting := self._waiting.get(question.id)) is not None:
            waiting.question = question
            waiting.answered.set()
