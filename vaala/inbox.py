"""`Inbox`: the approvals and questions of all open conversations that wait for a person.

Whoever can put a question to the person, such as an editor with a dialog, registers as an
`Elicitor` for a conversation. The answer comes back like any other, by the question's id, so the
first one wins between a dialog and another client; the others are told to take theirs down.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from vaala.actor import call_outside
from vaala_protocol.items import Question

if TYPE_CHECKING:
    from vaala_protocol.methods.runtime import PendingDecision

log = logging.getLogger(__name__)


class Elicitor(Protocol):
    """Both methods are called synchronously and must not wait."""

    def ask(self, question: Question) -> None:
        """Put a question to the person; answer with `ConversationHandle.answer_question`."""
        ...

    def withdraw(self, question_id: str) -> None:
        """The question was settled, by whatever answer, or died with its turn."""
        ...


class InboxWatcher(Protocol):
    def decision_pending(self, pending: PendingDecision) -> None: ...

    def decision_settled(self, conversation_id: str, decision_id: str) -> None: ...


class Inbox:
    """Bounded by what waits: an entry lives as long as the turn that asks."""

    def __init__(self, watcher: InboxWatcher) -> None:
        self._watcher = watcher
        self._pending: dict[str, PendingDecision] = {}
        self._elicitors: dict[str, list[Elicitor]] = {}

    @property
    def pending(self) -> tuple[PendingDecision, ...]:
        """What waits, oldest first."""
        return tuple(self._pending.values())

    def add(self, pending: PendingDecision) -> None:
        """Something waits for a person; it, or the inbox, was not told of it before."""
        decision = pending.decision
        self._pending[decision.id] = pending
        self._watcher.decision_pending(pending)
        if isinstance(decision, Question):
            question = decision
            self._elicit(pending.conversation_id, lambda one: one.ask(question))

    def settle(self, decision_id: str) -> None:
        """It was answered, withdrawn or has expired; nothing when it did not wait."""
        pending = self._pending.pop(decision_id, None)
        if pending is None:
            return
        self._watcher.decision_settled(pending.conversation_id, decision_id)
        if isinstance(pending.decision, Question):
            self._elicit(pending.conversation_id, lambda one: one.withdraw(decision_id))

    def clear(self, conversation_id: str, session_id: str | None = None) -> None:
        """A session, or a whole conversation, has ended: nothing of it waits any more."""
        for decision_id, pending in list(self._pending.items()):
            mine = pending.conversation_id == conversation_id
            if mine and session_id in (None, pending.session_id):
                self.settle(decision_id)

    @contextmanager
    def elicitation(self, conversation_id: str, elicitor: Elicitor) -> Generator[None]:
        """Give the questions of a conversation to ``elicitor`` too, while the block runs.

        What waits already comes first. Survives a conversation that is closed and opened again.
        """
        elicitors = self._elicitors.setdefault(conversation_id, [])
        elicitors.append(elicitor)
        try:
            for pending in self.pending:
                decision = pending.decision
                if pending.conversation_id == conversation_id and isinstance(decision, Question):
                    elicitor.ask(decision)
            yield
        finally:
            elicitors.remove(elicitor)
            if not elicitors:
                self._elicitors.pop(conversation_id, None)

    def _elicit(self, conversation_id: str, tell: Callable[[Elicitor], None]) -> None:
        for elicitor in list(self._elicitors.get(conversation_id, ())):
            try:
                call_outside(tell, elicitor)
            except Exception:
                log.exception("an elicitor of conversation %s failed", conversation_id)
