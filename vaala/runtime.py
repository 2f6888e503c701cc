"""`Runtime`: the definitions, the store, and the table of open conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import trio

from vaala import limits
from vaala.changes import now_ms
from vaala.checks import checked_location, checked_settings, checked_title
from vaala.conversation import Conversation
from vaala.dao.conversation_log import ConversationLog
from vaala.dao.store import Store
from vaala.definitions import Definitions
from vaala.handle import ConversationHandle
from vaala.table import Table
from vaala_executors.workspace import Executor
from vaala_protocol.errors import BadRequest, Stopping
from vaala_protocol.ids import new_id
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo, SessionInfo


class Runtime:
    """Open it with `open`: leaving ends everything that it runs, in order, within a deadline."""

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store,
        definitions: Definitions,
        executors: Mapping[str, Executor],
    ) -> None:
        self.store = store
        self.definitions = definitions
        self.executors = executors
        self._table: Table[Conversation] = Table(nursery, self._open_conversation)
        self._created: dict[str, ConversationLog] = {}
        self._stopping = False

    @staticmethod
    @asynccontextmanager
    async def open(
        store: Store, definitions: Definitions, executors: Mapping[str, Executor]
    ) -> AsyncGenerator[Runtime]:
        """Run a runtime while the block runs.

        On leaving, also by an error or a cancel, running turns are interrupted, everything is
        written down and processes are ended; what has not ended by then is cancelled.
        """
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            runtime = Runtime(nursery, store, definitions, executors)
            nursery.start_soon(runtime.keep_house)
            try:
                yield runtime
            except Exception as error:  # raised below, bare: the nursery would put it in a group
                failure = error
            finally:
                with trio.CancelScope(shield=True):
                    await runtime.stop()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def create_conversation(
        self,
        *,
        directory: str = ".",
        executor: str = "local",
        agent: str = "default",
        settings: Settings | None = None,
        title: str = "",
        ephemeral: bool = False,
    ) -> ConversationHandle:
        """Make a conversation that works in ``directory``. Nothing is on disk before its first
        message. Raises `BadRequest` for an unknown agent or executor and for what cannot be stored.
        """
        self.definitions.agent(agent)
        if self._stopping:
            raise Stopping("the runtime is closing")
        settings = checked_settings(settings or Settings())
        now = now_ms()
        if executor not in self.executors:
            known = ", ".join(sorted(self.executors)) or "none"
            raise BadRequest(f"no executor {executor!r}; there are: {known}")
        location = checked_location(directory, executor)
        info = ConversationInfo(
            id=new_id(), created_at=now, updated_at=now, title=checked_title(title),
            locations=(location,), ephemeral=ephemeral,
        )  # fmt: skip
        root = SessionInfo(id=info.id, agent=agent, created_at=now, settings=settings)
        self._created[info.id] = await self.store.create(info, root)
        await self._table.get(info.id)
        return ConversationHandle(self, info.id)

    async def open_conversation(self, conversation_id: str) -> ConversationHandle:
        """Open a stored conversation and settle what a crash left. Raises `NotFound`."""
        await self.conversation(conversation_id)
        return ConversationHandle(self, conversation_id)

    async def conversation(self, conversation_id: str) -> Conversation:
        """Return the actor of a conversation, opened when it is not. For front ends."""
        if self._stopping:
            raise Stopping("the runtime is closing")
        return self._table.find(conversation_id) or await self._table.get(conversation_id)

    async def delete_conversation(self, conversation_id: str) -> None:
        """End what runs in a conversation and delete it for good. Raises `NotFound`."""
        await self._table.close(conversation_id)
        await self.store.delete(conversation_id)

    @property
    def open_conversations(self) -> int:
        return len(self._table)

    @asynccontextmanager
    async def _open_conversation(self, conversation_id: str) -> AsyncGenerator[Conversation]:
        log = self._created.pop(conversation_id, None)
        log = log or await self.store.open(conversation_id)
        try:
            yield Conversation(log, lambda: self.definitions, self.executors)
        finally:
            with trio.CancelScope(shield=True):
                await log.close()

    async def keep_house(self) -> None:
        """Give back what idle conversations hold, for as long as the runtime runs."""
        while True:
            await trio.sleep(limits.JANITOR_PERIOD_S)
            now = trio.current_time()
            for conversation in self._table:
                conversation.tick(now)

    async def stop(self) -> None:
        """End all conversations in order; returns when they have ended, or at the deadline."""
        self._stopping = True
        with trio.move_on_after(limits.SHUTDOWN_S + 1.0):
            async with trio.open_nursery() as nursery:
                for conversation in self._table:
                    nursery.start_soon(self._table.close, conversation.id)
