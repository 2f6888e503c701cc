"""Child sessions: sub-agents, in the nursery of the session whose turn spawned them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import trio

from vaala import limits
from vaala.changes import now_ms, replace
from vaala.requests import ChildDone, Nudge, Send, SettleUnstarted, TakeResult, result_text
from vaala.table import Table
from vaala.tools.base import ToolFailure
from vaala_protocol.calls import AgentDetails
from vaala_protocol.content import TextContent
from vaala_protocol.errors import NotDurable, NotFound, Refused, Stopping, TimedOut
from vaala_protocol.events import SessionClosed
from vaala_protocol.ids import new_id
from vaala_protocol.settings import Settings
from vaala_protocol.state import SessionInfo, TurnInfo, TurnResult, UserInput
from vaala_storage.errors import StorageError

if TYPE_CHECKING:
    from vaala.session import Session
    from vaala.turn import Turn


class Children:
    """The open child sessions of a session. Their ended turns are reported to it."""

    def __init__(self, parent: Session) -> None:
        self._parent = parent
        self._reopening = False
        self._table: Table[Session] = Table(parent.children, self._open, self._crashed)

    def __len__(self) -> int:
        return len(self._table)

    @asynccontextmanager
    async def _open(self, session_id: str) -> AsyncGenerator[Session]:
        from vaala.session import Session  # a session is made of its children

        parent = self._parent
        opening = Session.open(
            parent.around, session_id, depth=parent.depth + 1, done=self._turn_done
        )
        async with opening as child:
            yield child

    def _turn_done(self, child: Session, result: TurnResult) -> None:
        self._parent.report(ChildDone(child.id, result.turn, result.text))

    def _crashed(self, session_id: str, error: Exception) -> None:
        reason = f"it crashed: {error!r}"
        self._parent.publish(SessionClosed(session_id=session_id, reason=reason))

    @property
    def at_rest(self) -> bool:
        """No child is being opened, and all are at rest."""
        children = list(self._table)
        opened = len(children) == len(self._table) and not self._reopening
        return opened and all(child.at_rest for child in children)

    def close_settled(self) -> None:
        """Close children that are at rest and whose result was taken."""
        known = self._parent.state.head.children
        for child in self._table:
            if child.id not in known and not child.busy:
                child.stop()

    async def get(self, session_id: str) -> Session:
        return await self._table.get(session_id)

    async def close(self, session_id: str) -> None:
        await self._table.close(session_id)

    def reopen(self, session_ids: tuple[str, ...]) -> None:
        """Open the children that were open when the runtime ended, and hear how they ended.

        A result that was told before is dropped by the parent.
        """
        self._reopening = True
        self._parent.spawn(self._reopen, session_ids)

    async def _reopen(self, session_ids: tuple[str, ...]) -> None:
        for session_id in session_ids:
            try:
                await self._settle(session_id)
            except NotFound:
                instance = self._parent.around.definitions.instance
                self._parent.report(ChildDone(session_id, never_ran(session_id, instance), ""))
            except Refused:
                continue
        self._reopening = False
        for child in list(self._table):
            await self._tell_rest(child)
        self._parent.report(Nudge())

    async def _settle(self, session_id: str) -> None:
        """Open a child. One that never had its task is told so in its own log before anybody else
        is: what a failed append may have left there does not come to light later."""
        child = await self.get(session_id)
        while True:
            try:
                return await child.ask(SettleUnstarted())
            except NotDurable:
                await trio.sleep(limits.SAVE_RETRY_MAX_S)

    def tell_again(self, session_id: str) -> None:
        """Report the result of a child that is at rest: nobody waits for it any more.

        What was reported while somebody did was left to them; a repeat is dropped.
        """
        if (child := self._table.find(session_id)) is not None:
            self._parent.spawn(self._tell_rest, child)

    async def _tell_rest(self, child: Session) -> None:
        if child.at_rest:
            with suppress(Refused):
                self._turn_done(child, await child.last_result())


class CallAgents:
    """What a tool call can do with agents; one for each call (`vaala.tools.base.Agents`)."""

    def __init__(self, turn: Turn, call_id: str) -> None:
        self._turn = turn
        self._session = turn.session
        self._call_id = call_id

    async def spawn(self, task: str, agent: str | None) -> str:
        """Open a child session and give it its task. Raises `ToolFailure` at a limit.

        The check that the turn goes on and the registration are one synchronous step, so that an
        interrupt always finds the child. The child's id is in the parent's log before its stream
        is made, so that opening always finds the child too.
        """
        session = self._session
        table = session.children_table
        if session.depth >= limits.DEPTH_MAX:
            raise ToolFailure(f"Agents nest {limits.DEPTH_MAX} deep at most; do the task yourself.")
        if len(table) >= limits.CHILDREN_MAX:
            raise ToolFailure(f"{len(table)} agents are open, the limit; wait for one first.")
        if self._turn.closing:
            raise ToolFailure("The turn is ending; nothing was started.")
        name = agent or session.info.agent
        try:
            self._turn.definitions.agent(name)
        except Refused as refused:
            raise ToolFailure(str(refused)) from refused
        child_id = new_id()
        self._turn.spawned.add(child_id)
        settings = self._turn.info.settings
        info = SessionInfo(
            id=child_id, agent=name, created_at=now_ms(), parent=session.id,
            spawned_by=self._turn.id, settings=Settings(model=settings.model, mode=settings.mode),
        )  # fmt: skip
        spawning = AgentDetails(action="spawn", task=task)
        await self._turn.note_details(self._call_id, replace(spawning, session_id=child_id))
        try:
            await session.around.log.create_session(info)
            child = await table.get(child_id)
            source = UserInput(content=(TextContent(text=task),))
            # Shielded: an interrupt that comes meanwhile finds no turn of the child to interrupt.
            with trio.CancelScope(shield=True):
                await child.ask(Send(client_id=f"spawn:{self._call_id}", source=source))
            if self._turn.closing:
                child.interrupt()
        except (Stopping, TimedOut) as unknown:
            raise ToolFailure(f"The agent may not have been started: {unknown}") from unknown
        except (NotDurable, StorageError) as unknown:
            # Its first message may be on disk all the same: it stays named in the parent's log,
            # and opening that settles it.
            await table.close(child_id)
            raise ToolFailure(f"The agent could not be started: {unknown}") from unknown
        except Refused as refused:
            await table.close(child_id)
            text = f"The agent could not be started: {refused}"
            raise ToolFailure(text, spawning) from refused
        return child_id

    async def wait(self, session_id: str, timeout_s: float) -> str:
        """Wait for an agent to come to rest and return how it ended and what it said last."""
        session = self._session
        child = session.around.sessions.get(session_id)
        if child is None:
            open_ones = ", ".join(session.state.head.children) or "none"
            raise ToolFailure(f"No agent {session_id!r} is open; open agents: {open_ones}.")
        taken = False
        try:
            with (
                session.around.wait_graph.edge(session.id, session_id),
                trio.fail_after(timeout_s),
            ):
                result = await child.settled()
                await session.deliver(TakeResult(session_id))
                taken = True
        except ValueError as cycle:
            raise ToolFailure(f"That wait would never end: {cycle}.") from cycle
        except trio.TooSlowError:
            raise ToolFailure(f"The agent still works after {timeout_s:g} s; wait again.") from None
        except Refused as refused:
            raise ToolFailure(str(refused)) from refused
        finally:
            if not taken:
                session.children_table.tell_again(session_id)
        return result_text(result)


def never_ran(session_id: str, instance: str) -> TurnInfo:
    """Stands for the turn of a child whose runtime ended before it had its task; always the same,
    so that it is told once."""
    now = now_ms()
    return TurnInfo(
        id=session_id, state="interrupted", started_at=now, ended_at=now, settings=Settings(),
        instance=instance, message="It was never started: the runtime ended before.",
    )  # fmt: skip
