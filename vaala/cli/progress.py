"""`Progress`: follows one conversation's updates and tells views, turns and approvals apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import trio

from vaala_protocol.events import Frame, InputChanged, ItemChanged, SessionOpened, TurnChanged
from vaala_protocol.items import (
    Approval,
    Item,
    ModelError,
    Question,
    ToolCall,
    UserMessage,
)
from vaala_protocol.settings import ErrorKind
from vaala_protocol.state import InputInfo, SessionSnapshot, Snapshot, TurnInfo

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
    """What is known of the root session's turn, its calls and the approvals that wait.

    Others may use the conversation at the same time. With ``everything`` all that happens in it
    counts as ours; else only the turns that take a message of this command, and what they start.
    """

    def __init__(self, root_id: str, *, everything: bool = False) -> None:
        self._root_id = root_id
        self._everything = everything
        self._messages: dict[str, str | None] = {}
        """Our messages by client id, each with the id of its input while it waits."""
        self._turns: set[str] = set()
        """Those that took one of our messages."""
        self._born: dict[str, tuple[str, str | None]] = {}
        """The session and the turn that have started a session."""
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

    @property
    def ours(self) -> str | None:
        """The id of the turn that runs when it is one of ours."""
        turn_id = self.running
        return turn_id if self._everything or turn_id in self._turns else None

    @property
    def waiting(self) -> str | None:
        """The id of our input that waits for a turn."""
        return next((input_id for input_id in self._messages.values() if input_id), None)

    @property
    def unfinished(self) -> bool:
        """A turn of ours runs, or a message of ours waits for one."""
        return self.ours is not None or self.waiting is not None

    def expect(self, client_id: str) -> None:
        """Take the turn for ours that takes this message; call it before the message is sent."""
        self._messages[client_id] = None

    def next_approval(self) -> Approval | None:
        """Return the first approval that waits in a turn of ours."""
        return next(filter(self.is_ours, self.approvals.values()), None)

    def next_question(self) -> Question | None:
        """Return the first question that waits in a turn of ours."""
        return next(filter(self.is_ours, self.questions.values()), None)

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
            case Frame(event=InputChanged(input=changed)):
                self._input(changed)
            case Frame(event=SessionOpened(session=session)):
                self._snapshot(session)
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

    def is_ours(self, item: Item) -> bool:
        """Tell whether an item is of a turn of ours, or of what such a turn has started."""
        session_id, turn_id = item.session_id, item.turn_id
        while (born := self._born.get(session_id)) is not None:
            session_id, turn_id = born
        return self._everything or turn_id in self._turns

    def _input(self, changed: InputInfo) -> None:
        if changed.client_id in self._messages:
            waits = changed.state in ("waiting", "held")
            self._messages[changed.client_id] = changed.id if waits else None

    def _snapshot(self, session: SessionSnapshot) -> None:
        if (parent := session.info.parent) is not None:
            self._born[session.info.id] = parent, session.info.spawned_by
        for one in session.queue:
            self._input(one)
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
            case UserMessage(client_id=str(client_id)) if client_id in self._messages:
                self._messages[client_id] = None
                if item.turn_id is not None:
                    self._turns.add(item.turn_id)
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
