"""`Conversation`: sessions around one log, their workspace, and the stream of what happens.

It routes and does not relay: whoever wants something of a session gets the session and asks it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import trio
from msgspec import Struct

from vaala import limits
from vaala.actor import Actor, Command
from vaala.changes import replace
from vaala.checks import checked_location, checked_tags, checked_title
from vaala.dao.conversation_log import ConversationLog
from vaala.definitions import Definitions
from vaala.session import Session
from vaala.stream import EventStream, Subscription
from vaala.table import Table
from vaala.waits import WaitGraph
from vaala_executors.errors import ExecutorError
from vaala_executors.workspace import Executor, Workspace
from vaala_protocol.errors import BadRequest, NotDurable, Stopping, Unreadable
from vaala_protocol.events import ConversationChanged, SessionClosed
from vaala_protocol.items import Approval
from vaala_protocol.state import ConversationInfo, ConversationStatus, Location, Snapshot
from vaala_storage.errors import StorageError

log = logging.getLogger(__name__)


class Update(Struct, Command[ConversationInfo], frozen=True):
    """Change what is given; None leaves a field as it is. Durable before it is answered."""

    title: str | None = None
    locations: tuple[Location, ...] | None = None
    tags: tuple[str, ...] | None = None
    archived: bool | None = None


class Conversation(Actor):
    """Owns the conversation's record, its workspace and its root session."""

    def __init__(
        self,
        conversation_log: ConversationLog,
        definitions: Callable[[], Definitions],
        executors: Mapping[str, Executor],
    ) -> None:
        super().__init__()
        self.log = conversation_log
        self.stream = EventStream()
        self.wait_graph = WaitGraph()
        self.sessions: dict[str, Session] = {}
        self.used_at = trio.current_time()
        self._definitions = definitions
        self._executors = executors
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
        return self._definitions()

    @property
    def locations(self) -> tuple[Location, ...]:
        return self.log.record.locations

    @property
    def info(self) -> ConversationInfo:
        return replace(self.log.record, status=self._status)

    async def opened(self) -> None:
        self._roots = Table(self.children, self._open_root, self._root_crashed)
        await self._roots.get(self.id)

    async def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        try:
            await super().serve(ready)
        finally:
            self.stream.close()

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
        return self.info

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
                "here before it goes on"
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
        executor = self._executors.get(location.executor)
        if executor is None:
            known = ", ".join(sorted(self._executors)) or "none"
            raise ExecutorError(f"no executor {location.executor!r}; there are: {known}")
        async with executor.open_workspace(location.directory, location.additional) as workspace:
            task_status.started(workspace)
            await trio.sleep_forever()

    def session_changed(self) -> None:
        status = self._current_status()
        self.used_at = trio.current_time()
        if status != self._status:
            self._status = status
            self.stream.publish(ConversationChanged(conversation=self.info))

    def _current_status(self) -> ConversationStatus:
        pending = any(
            isinstance(item, Approval) and item.state == "pending"
            for session in self.sessions.values()
            for item in session.state.open.values()
        )
        if pending:
            return "waitingApproval"
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
    async def subscribe(self) -> AsyncGenerator[Subscription]:
        """Subscribe to what happens: a snapshot first, then every change in order."""
        self.used_at = trio.current_time()
        with self.stream.subscribe(self.snapshot) as subscription:
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
        used = self.stream.watched or any(session.busy for session in self.sessions.values())
        if used:
            self.used_at = now
        elif now - self.used_at > self._kept_s:
            self.stop()

    @property
    def _kept_s(self) -> float:
        empty = self.log.staged and not self.log.record.ephemeral
        return limits.EMPTY_CONVERSATION_KEPT_S if empty else limits.CONVERSATION_KEPT_S
