"""`News`: what happened outside of a session's turns; its agent is told once, by its queue."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from vaala import inputs
from vaala.changes import input_change
from vaala.requests import ChildDone
from vaala_protocol.errors import NotDurable
from vaala_protocol.state import CommandEnded, PeerInput

if TYPE_CHECKING:
    from vaala.session import Session


class News:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._told: set[str] = set()

    async def tell(self, client_id: str, source: CommandEnded | PeerInput) -> None:
        """Queue something for the agent; a repeat of the same client id is dropped."""
        session = self._session
        if client_id in session.state.client_ids or client_id in self._told:
            return
        self._told.add(client_id)
        told = inputs.told(session.state, client_id, source)
        try:
            await session.write([input_change(session.id, told)], keep=True)
        except NotDurable:
            session.nudge_later()

    async def command_ended(self, ended: CommandEnded) -> None:
        await self.tell(f"command:{ended.command_id}", ended)

    async def child_done(self, done: ChildDone) -> None:
        """Queue the result of a child, unless a call of ours waits for it."""
        session = self._session
        known = done.session_id in session.state.head.children
        if known and not session.around.wait_graph.waits(session.id, done.session_id):
            await self.tell(f"child:{done.turn.id}", inputs.result_of_child(done))

    async def take_result(self, session_id: str) -> None:
        """Take the result of a child back from the queue; when it cannot be saved, it is kept."""
        session = self._session
        with suppress(NotDurable):
            await session.write((), keep=True)
        with suppress(NotDurable):
            await session.write(inputs.taken_back(session.state, session_id), keep=True)
