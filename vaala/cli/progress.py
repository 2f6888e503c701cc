"""`Progress`: follows one conversation's updates and tells views, turns and approvals apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import trio

from vaala_protocol.events import Frame, ItemChanged, TurnChanged
from vaala_protocol.items import (
    Approval,
    Item,
    ModelError,
    Question,
    ToolCall,
)
from vaala_protocol.settings import ErrorKind
from vaala_protocol.state import SessionSnapshot, Snapshot, TurnInfo

Update = Snapshot | Frame


class View(Protocol):
    """Shows updates to whoever runs the command."""

    def update(self, update: Update) -> None: ...

    def note(self, text: str) -> None:
        """Tell one line about the run itself."""
        ...

    def asking(self) -> AbstractContextManager[Callable[[str], None]]:
        """Hold back all else while the block runs; what is yielded shows text at once."""
        ...

    def end(self, text: str, turn: TurnInfo, code: int) -> None:
        """A prompt is done: its answer, its turn, and what the command would end with."""
        ...


class Progress:
    """What is known of the root session's turn, its calls and the approvals that wait."""

    def __init__(self, root_id: str) -> None:
        self._root_id = root_id
        self._ended: defaultdict[str, trio.Event] = defaultdict(trio.Event)
        self._changed = trio.Event()
        self.turn: TurnInfo | None = None
        """The turn that runs, or the last one."""
        self.calls: dict[str, ToolCall] = {}
        self.approvals: dict[str, Approval] = {}
        """Those that wait for an answer, of all sessions, oldest first."""
        self.questions: dict[str, Question] = {}
        """The same of the agents' questions."""
        self.asked: set[str] = set()
        """The calls that somebody was asked about."""
        self.model_error: ErrorKind | None = None
        """Of the last failed call of the turn."""

    @property
    def running(self) -> str | None:
        """The id of the turn that runs."""
        turn = self.turn
        return turn.id if turn is not None and turn.state == "running" else None

    def update(self, update: Update) -> None:
        match update:
            case Snapshot(sessions=sessions):
                for session in sessions:
                    self._snapshot(session)
            case Frame(event=TurnChanged(session_id=session_id, turn=turn)):
                if session_id == self._root_id:
                    self._take_turn(turn)
            case Frame(event=ItemChanged(item=item)):
                self._item(item)
            case _:
                return
        self._changed.set()
        self._changed = trio.Event()

    @property
    def denied(self) -> list[ToolCall]:
        """The calls of the turn that mode or rules refused, without asking anybody."""
        calls = self.calls.values()
        return [call for call in calls if call.state == "denied" and call.id not in self.asked]

    async def wait_ended(self, turn_id: str) -> None:
        """Wait until the end of a turn has come through the updates. Cancel: only stops waiting."""
        await self._ended[turn_id].wait()

    async def wait_change(self) -> None:
        """Wait for the next update that may matter to an approval or a turn."""
        await self._changed.wait()

    def _snapshot(self, session: SessionSnapshot) -> None:
        if session.info.id == self._root_id and session.turn is not None:
            self._take_turn(session.turn)
        current = None if session.turn is None else session.turn.id
        for item in session.items:
            if not isinstance(item, ToolCall) or item.turn_id == current:
                self._item(item)

    def _take_turn(self, turn: TurnInfo) -> None:
        if self.turn is None or self.turn.id != turn.id:
            self.calls.clear()
            self.model_error = None
        self.turn = turn
        if turn.state != "running":
            self._ended[turn.id].set()

    def _item(self, item: Item) -> None:
        if isinstance(item, Approval):
            self.asked.add(item.tool_call_id)
        match item:
            case ToolCall():
                self.calls[item.id] = item
            case Approval(state="pending"):
                self.approvals[item.id] = item
            case Approval():
                self.approvals.pop(item.id, None)
            case Question(state="pending"):
                self.questions[item.id] = item
            case Question():
                self.questions.pop(item.id, None)
            case ModelError(session_id=self._root_id):
                self.model_error = item.error
            case _:
                pass
