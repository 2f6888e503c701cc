"""`Conversation`: sessions around one log, their workspace, and the stream of what happens.

It routes and does not relay: whoever wants something of a session gets the session and asks it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import trio
from msgspec import Struct

from vaala import limits
from vaala.actor import Actor, Command
from vaala.changes import now_ms, replace
from vaala.checks import checked_location, checked_tags, checked_title
from vaala.dao.conversation_log import ConversationLog
from vaala.definitions import Definitions
from vaala.hub import RuntimeHub
from vaala.requests import AnswerQuestion
from vaala.services.elicitation import Elicitations
from vaala.services.environment import Environment
from vaala.services.registry import Services
from vaala.session import Session
from vaala.stream import EventStream, Reading, Subscription
from vaala.table import Table
from vaala.text import is_blank
from vaala.titles import Titled, make_title
from vaala.waits import WaitGraph
from vaala_executors.errors import ExecutorError
from vaala_executors.workspace import Executor, Workspace
from vaala_protocol.content import text_of
from vaala_protocol.errors import BadRequest, NotDurable, NotPending, Stopping, Unreadable
from vaala_protocol.events import ConversationChanged, SessionClosed
from vaala_protocol.items import Approval, Item, Question, ToolCall, UserMessage
from vaala_protocol.state import ConversationInfo, ConversationStatus, Location, Snapshot
from vaala_storage.errors import StorageError

if TYPE_CHECKING:
    from vaala_protocol.methods.conversation import Position


log = logging.getLogger(__name__)


class Update(Struct, Command[ConversationInfo], frozen=True):
    """Change what is given; None leaves a field as it is. Durable before it is answered."""

    title: str | None = None
    locations: tuple[Location, ...] | None = None
    tags: tuple[str, ...] | None = None
    archived: bool | None = None


class Outside(Protocol):
    """The runtime, as its conversations see it. Nothing here waits."""

    @property
    def definitions(self) -> Definitions: ...

    @property
    def executors(self) -> Mapping[str, Executor]: ...

    @property
    def hub(self) -> RuntimeHub: ...


class Conversation(Actor):
    """Owns the conversation's record, its workspace and its root session."""

    def __init__(self, conversation_log: ConversationLog, outside: Outside) -> None:
        super().__init__()
        self.log = conversation_log
        self.deleting = False
        """It ends to be deleted: whoever deletes it closes the stream, and says what came of it."""
        self.stream = EventStream()
        self.wait_graph = WaitGraph()
        self.sessions: dict[str, Session] = {}
        self.services = Services(lambda: self.definitions.tools.names)
        """What clients offer to do for it."""
        self.environment = Environment(withheld=lambda: outside.definitions.withheld)
        """Of the client that spoke last."""
        self.used_at = trio.current_time()
        self._outside = outside
        self._roots: Table[Session] | None = None
        self._workspaces: dict[Location, Workspace] = {}
        self._opening_workspace: trio.Lock | None = None
        self._status: ConversationStatus = "idle"

    def __str__(self) -> str:
        return f"conversation {self.id}"

    @property
    def id(self) -> str:
        return self.log.id

    @property
    def definitions(self) -> Definitions:
        """Those of the turns that run, so that their agents have the same; else the newest."""
        turns = (session.turn for session in self.sessions.values())
        running = next((turn for turn in turns if turn is not None), None)
        return self._outside.definitions if running is None else running.definitions

    @property
    def locations(self) -> tuple[Location, ...]:
        return self.log.record.locations

    @property
    def info(self) -> ConversationInfo:
        return replace(self.log.record, status=self._status)

    async def opened(self) -> None:
        self._roots = Table(self.children, self._open_root, self._root_crashed)
        self.children.start_soon(self._elicit)
        await self._roots.get(self.id)

    async def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        reason = "crashed"
        try:
            await super().serve(ready)
            reason = "closing"
        except trio.Cancelled:
            reason = "closing"
            raise
        finally:
            self._outside.hub.inbox.clear(self.id)
            if not self.deleting:
                self.stream.close(reason)

    async def closing(self) -> None:
        for session in list(self.sessions.values()):
            session.stop()
        self.children.cancel_scope.cancel()

    @asynccontextmanager
    async def _open_root(self, session_id: str) -> AsyncGenerator[Session]:
        async with Session.open(self, session_id, depth=1) as session:
            yield session

    def _root_crashed(self, session_id: str, error: Exception) -> None:
        reason = f"it crashed: {error!r}"
        self.stream.publish(SessionClosed(session_id=session_id, reason=reason))
        self.session_changed()

    async def handle(self, command: Any) -> Any:
        match command:
            case Update():
                return await self._update(command)
            case Titled():
                return await self._titled(command)
            case _:
                raise TypeError(f"{self} does not know {command!r}")

    async def _update(self, update: Update) -> ConversationInfo:
        try:
            if self.log.foreign and update.locations is not None:
                await self.log.adopt(update.locations)
            await self.log.update(
                title=None if update.title is None else checked_title(update.title),
                locations=update.locations,
                tags=None if update.tags is None else checked_tags(update.tags),
                archived=update.archived,
            )
        except StorageError as error:
            raise NotDurable(f"could not save: {error}") from error
        self.stream.publish(ConversationChanged(conversation=self.info))
        self.noted()
        return self.info

    def first_turn(self, session: Session, items: Sequence[Item]) -> None:
        definitions = self._outside.definitions
        said = [text_of(item.content) for item in items if isinstance(item, UserMessage)]
        text = "\n\n".join(said)
        wanted = definitions.titles is not None and session.id == self.id and not is_blank(text)
        if wanted and not self.log.has_given_title:
            self.spawn(make_title, definitions, self.environment.keys, text, self.report)

    async def _titled(self, titled: Titled) -> None:
        """Write a title down, with what it cost; one that a person gave meanwhile stays."""
        if self.deleting:
            return
        try:
            await self.log.titled(titled.title, titled.model, titled.usage, now_ms())
        except StorageError as error:
            log.warning("%s: its title is not saved: %s", self, error)
        else:
            self.stream.publish(ConversationChanged(conversation=self.info))
            self.noted()

    async def _elicit(self) -> None:
        """Give questions to the clients that put them to the person."""
        async with trio.open_nursery() as nursery:
            elicitations = Elicitations(nursery, self.services, self._answer_question)
            with self._outside.hub.inbox.elicitation(self.id, elicitations):
                await trio.sleep_forever()

    async def _answer_question(self, question_id: str, answer: str | None, by: str) -> None:
        for session in self.sessions.values():
            if question_id in session.state.open:
                return await session.ask(AnswerQuestion(question_id, answer, by))
        raise NotPending(f"question {question_id} is not pending")

    def place(self, directory: str) -> Location:
        """Return a directory of the executor that the conversation works on."""
        executor = self.locations[0].executor if self.locations else "local"
        return checked_location(directory, executor)

    async def root(self) -> Session:
        """Return the root session, opened again from its log when it has crashed.

        Raises `BadRequest` for a conversation that came from elsewhere and has no place here yet.
        """
        assert self._roots is not None, f"{self} does not run"
        self.used_at = trio.current_time()
        return await self._roots.get(self.id)

    def check_place(self) -> None:
        """Raise `BadRequest` when nobody has said where a conversation from elsewhere works."""
        if self.log.foreign:
            raise BadRequest(
                f"conversation {self.id} was copied or imported: say in which directory it works "
                f"here (vaala run --conversation {self.id} --cwd DIR)"
            )

    async def workspace(self) -> Workspace:
        """Return the primary workspace, opened at first use, closed with the conversation.

        After a change of the location it is another one; commands live on in the one before.
        """
        if not self.locations:
            raise ExecutorError("this conversation has no directory to work in")
        location = self.locations[0]
        if location in self._workspaces:
            return self._workspaces[location]
        self._opening_workspace = self._opening_workspace or trio.Lock()
        async with self._opening_workspace:
            if location not in self._workspaces:
                opened: Workspace = await self.children.start(self._hold_workspace, location)
                self._workspaces[location] = opened
            return self._workspaces[location]

    async def _hold_workspace(
        self, location: Location, *, task_status: trio.TaskStatus[Workspace]
    ) -> None:
        executors = self._outside.executors
        executor = executors.get(location.executor)
        if executor is None:
            known = ", ".join(sorted(executors)) or "none"
            raise ExecutorError(f"no executor {location.executor!r}; there are: {known}")
        async with executor.open_workspace(location.directory, location.additional) as workspace:
            task_status.started(workspace)
            await trio.sleep_forever()

    def noted(self) -> None:
        """Something of the conversation was written down: its row may be another."""
        self._outside.hub.conversation_changed(self.id)

    def session_changed(self) -> None:
        status = self._current_status()
        self.used_at = trio.current_time()
        if status != self._status:
            self._status = status
            self.stream.publish(ConversationChanged(conversation=self.info))
            self.noted()

    def decision_changed(self, session: Session, decision: Approval | Question) -> None:
        if decision.state == "pending":
            from vaala_protocol.methods.runtime import PendingDecision

            pending = PendingDecision(
                conversation_id=self.id,
                session_id=session.id,
                conversation_title=self.log.record.title,
                title=_title(session, decision),
                decision=decision,
            )
            self._outside.hub.inbox.add(pending)
        else:
            self._outside.hub.inbox.settle(decision.id)
        self.session_changed()

    def session_closed(self, session_id: str) -> None:
        self._outside.hub.inbox.clear(self.id, session_id)
        if not self.stopping:
            self.session_changed()

    def _current_status(self) -> ConversationStatus:
        waiting = {
            type(item)
            for session in self.sessions.values()
            for item in session.state.open.values()
            if isinstance(item, Approval | Question) and item.state == "pending"
        }
        if waiting:
            return "waitingApproval" if Approval in waiting else "waitingAnswer"
        if any(session.turn is not None for session in self.sessions.values()):
            return "running"
        root = self.sessions.get(self.id)
        turn = root.state.head.turn if root else None
        return "failed" if turn is not None and turn.state == "failed" else "idle"

    @contextmanager
    def reading(self) -> Generator[None]:
        """Raise what storage says in the block as `Stopping` or `Unreadable`, for a client."""
        try:
            yield
        except StorageError as error:
            if self.stopping:
                raise Stopping(f"{self}: it is closing") from error
            raise Unreadable(f"could not read: {error}") from error

    @asynccontextmanager
    async def subscribe(
        self, *, after: Position | None = None, reading: Reading | None = None
    ) -> AsyncGenerator[Subscription]:
        """Subscribe to what happens: a snapshot first, then every change in order.

        With ``after``, only what has changed since then, when all of that is still known.
        """
        self.used_at = trio.current_time()
        watching = self.stream.subscribe(self.snapshot, after=after, reading=reading)
        with watching as subscription:
            with self.reading():
                for session in list(self.sessions.values()):
                    await session.recent.load()
            yield subscription

    def snapshot(self) -> Snapshot:
        """Return the conversation at this moment, built from memory."""
        return Snapshot(
            epoch=self.stream.epoch,
            seq=self.stream.seq,
            conversation=self.info,
            sessions=tuple(session.snapshot() for session in self.sessions.values()),
        )

    def tick(self, now: float) -> None:
        """Called now and then: give back memory, and end when nobody needs the conversation."""
        for session in self.sessions.values():
            session.tick(now)
        self.stream.tick(now)
        if self.used:
            self.used_at = now
        elif now - self.used_at > self._kept_s:
            self.stop()

    @property
    def used(self) -> bool:
        """Somebody watches it or serves it, or something of it runs or waits to be saved."""
        served = self.stream.watched or len(self.services) > 0
        return served or any(session.busy for session in self.sessions.values())

    @property
    def empty(self) -> bool:
        """Nobody has said anything in it: it is nowhere else, and gone when it closes."""
        return self.log.staged and not self.log.record.ephemeral

    @property
    def _kept_s(self) -> float:
        return limits.EMPTY_CONVERSATION_KEPT_S if self.empty else limits.CONVERSATION_KEPT_S


def _title(session: Session, decision: Approval | Question) -> str:
    """Return what an approval is about, in one line; a question says it itself."""
    if isinstance(decision, Question):
        return ""
    call = session.state.open.get(decision.tool_call_id)
    return call.title if isinstance(call, ToolCall) else ""
