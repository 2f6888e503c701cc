"""`Elicitations`: the questions of a conversation, put to the person by whichever client does so.

Another client may answer first, by the question's id; then the question is taken back.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextvars import copy_context

import trio

from vaala.services.registry import Elicited, Services
from vaala_protocol.errors import Refused
from vaala_protocol.items import Question

_log = logging.getLogger(__name__)


class Elicitations:
    """``nursery`` is the conversation's: with it the questions that wait are taken back.

    One task for each question that waits. ``answer`` gets its id, the answer (None: the person
    does not want to) and the client's name; it may raise `Refused`, such as when the question was
    answered another way in the same moment.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        services: Services,
        answer: Callable[[str, str | None, str], Awaitable[None]],
    ) -> None:
        self._nursery = nursery
        self._services = services
        self._answer = answer
        self._asked: dict[str, trio.CancelScope] = {}
        # A task inherits the context of whoever starts it. Questions come out of the loop of the
        # session that asks, and the answer must not count as a request of that session to itself.
        self._context = copy_context()

    def ask(self, question: Question) -> None:
        """Put a question to the person; nothing when it is put already. Never waits."""
        if question.id not in self._asked:
            scope = self._asked[question.id] = trio.CancelScope()
            self._context.run(self._nursery.start_soon, self._put, question, scope)

    def withdraw(self, question_id: str) -> None:
        """The question was settled: take it back, unless its answer came this way."""
        if (scope := self._asked.get(question_id)) is not None:
            scope.cancel()

    async def _put(self, question: Question, scope: trio.CancelScope) -> None:
        found: Elicited | None = None
        try:
            with scope:
                found = await self._services.elicit(question.id, question.text, question.choices)
        finally:
            del self._asked[question.id]
        if found is None:
            return
        try:
            await self._answer(question.id, found.answer, found.client)
        except Refused as refused:
            _log.info("the answer of the client %s came to nothing: %s", found.client, refused)
        except Exception:
            _log.exception("the answer to question %s could not be given", question.id)
