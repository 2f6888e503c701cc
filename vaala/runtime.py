"""`Runtime`: the definitions, the store, and the table of open conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import trio

from vaala import limits
from vaala.activity import activity_of
from vaala.changes import now_ms
from vaala.checks import checked_location, checked_settings, checked_title, storable
from vaala.conversation import Conversation
from vaala.dao.conversation_log import ConversationLog
from vaala.dao.store import Store
from vaala.definitions import Definitions
from vaala.handle import ConversationHandle
from vaala.hub import RuntimeHub
from vaala.subscription import QueueBudget
from vaala.table import Table
from vaala.transfer import export_file, import_file, storing
from vaala_executors.workspace import Executor
from vaala_protocol.errors import BadRequest, NotFound, Stopping
from vaala_protocol.ids import new_id
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo, SessionInfo

if TYPE_CHECKING:
    from vaala.hub_stream import RuntimeSubscription
    from vaala_protocol.methods.runtime import ConversationActivity


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
        self.hub = RuntimeHub(store, self._live)
        self._table: Table[Conversation] = Table(nursery, self._open_conversation)
        self._created: dict[str, ConversationLog] = {}
        self._by_client: dict[str, str] = {}
        """The conversations that clients have made, by their id for that, oldest first."""
        self._creating = trio.Lock()
        self._deleting: set[str] = set()
        self._turn_ended = trio.Event()
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
            nursery.start_soon(runtime.hub.run)
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
        client_id: str | None = None,
    ) -> ConversationHandle:
        """Make a conversation that works in ``directory``. Nothing is on disk before its first
        message. The same ``client_id`` again finds what was made first, for as long as that is
        among the last `limits.CREATED_REMEMBERED_MAX` of this run and not deleted. Raises
        `BadRequest` for an unknown agent or executor and for what cannot be stored.
        """
        self.definitions.agent(agent)
        self._check_running()
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
        if client_id is None:
            return await self._create(info, root)
        storable(client_id, "the client id", limits.CLIENT_ID_BYTES_MAX)
        async with self._creating:
            known_id = self._by_client.get(client_id)
            if known_id is not None and await self._is_there(known_id):
                return ConversationHandle(self, known_id)
            made = await self._create(info, root)
            self._by_client[client_id] = made.id
            if len(self._by_client) > limits.CREATED_REMEMBERED_MAX:
                del self._by_client[next(iter(self._by_client))]
            return made

    async def _create(self, info: ConversationInfo, root: SessionInfo) -> ConversationHandle:
        self._created[info.id] = await self.store.create(info, root)
        await self._table.get(info.id)
        return ConversationHandle(self, info.id)

    async def _is_there(self, conversation_id: str) -> bool:
        try:
            await self.conversation(conversation_id)
        except NotFound:
            return False
        return True

    async def open_conversation(self, conversation_id: str) -> ConversationHandle:
        """Open a stored conversation and settle what a crash left. Raises `NotFound`."""
        await self.conversation(conversation_id)
        return ConversationHandle(self, conversation_id)

    async def conversation(self, conversation_id: str) -> Conversation:
        """Return the actor of a conversation, opened when it is not. For front ends."""
        self._check_running()
        if conversation_id in self._deleting:
            raise NotFound(f"conversation {conversation_id} is being deleted")
        return self._table.find(conversation_id) or await self._table.get(conversation_id)

    async def delete_conversation(self, conversation_id: str) -> None:
        """End what runs in a conversation and delete it for good. Raises `NotFound`.

        Those who watch it are told ``deleted``.
        """
        self._deleting.add(conversation_id)
        empty = False
        try:
            if (conversation := self._table.find(conversation_id)) is not None:
                conversation.deleted = True
                empty = conversation.log.staged
            await self._table.close(conversation_id)
            with storing(f"conversation {conversation_id} could not be deleted"):
                await self.store.delete(conversation_id)
        except NotFound:
            if not empty:  # nothing of it was on disk, and it is gone with its closing
                raise
        finally:
            self._deleting.discard(conversation_id)
        self.hub.conversation_removed(conversation_id)

    async def fork_conversation(
        self, conversation_id: str, turn_id: str | None = None
    ) -> ConversationHandle:
        """Make a conversation that begins like this one, up to the end of a turn of its root.

        Without ``turn_id`` it has every step that has ended. Raises `NotFound`, and `Busy` while
        there is no such end yet.
        """
        self._check_running()
        with storing(f"conversation {conversation_id} could not be forked"):
            new = await self.store.fork(conversation_id, turn_id=turn_id)
        self.hub.conversation_changed(new)
        return ConversationHandle(self, new)

    async def import_conversation(self, path: str) -> ConversationHandle:
        """Add a conversation from an archive in a file; see `vaala.transfer.import_file`."""
        self._check_running()
        new = await import_file(self.store, path)
        self.hub.conversation_changed(new)
        return ConversationHandle(self, new)

    async def export_conversation(self, conversation_id: str, path: str) -> int:
        """Write a conversation to a new file; see `vaala.transfer.export_file`."""
        self._check_running()
        return await export_file(self.store, conversation_id, path)

    def subscribe(
        self, *, budget: QueueBudget | None = None, on_ready: Callable[[], None] | None = None
    ) -> AbstractAsyncContextManager[RuntimeSubscription]:
        """Watch all conversations at once; see `vaala.hub.RuntimeHub.subscribe`."""
        return self.hub.subscribe(budget=budget, on_ready=on_ready)

    def redefine(self, definitions: Definitions) -> None:
        """Replace the definitions. Running turns, and the agents they have started, keep those
        that they began with; each conversation takes the new ones with its next turn.

        Tools that are in both should be the same objects: they exclude each other on a file.
        """
        self.definitions = definitions

    async def released(self, definitions: Definitions) -> None:
        """Wait until no turn runs with ``definitions``, which were replaced. Cancel: only stops
        waiting."""
        while any(
            session.turn is not None and session.turn.definitions is definitions
            for conversation in self._table
            for session in conversation.sessions.values()
        ):
            await self._turn_ended.wait()

    def turn_ended(self) -> None:
        """Called by a conversation when one of its turns may have ended."""
        ended, self._turn_ended = self._turn_ended, trio.Event()
        ended.set()

    @property
    def open_conversations(self) -> int:
        return len(self._table)

    @property
    def busy(self) -> bool:
        """A turn or a command runs, or a decision is waited for, or something is not saved yet."""
        return any(
            session.busy
            for conversation in self._table
            for session in conversation.sessions.values()
        )

    def status(self) -> tuple[ConversationActivity, ...]:
        """Return what is alive now, oldest conversation first."""
        return tuple(activity_of(one) for one in sorted(self._table, key=lambda one: one.id))

    def _live(self, conversation_id: str) -> ConversationInfo | None:
        conversation = self._table.find(conversation_id)
        return None if conversation is None else conversation.info

    def _check_running(self) -> None:
        if self._stopping:
            raise Stopping("the runtime is closing")

    @asynccontextmanager
    async def _open_conversation(self, conversation_id: str) -> AsyncGenerator[Conversation]:
        log = self._created.pop(conversation_id, None)
        log = log or await self.store.open(conversation_id)
        try:
            yield Conversation(log, self)
        finally:
            with trio.CancelScope(shield=True):
                await log.close()
            self.hub.conversation_changed(conversation_id)

    async def keep_house(self) -> None:
        """Give back what idle conversations hold, for as long as the runtime runs."""
        while True:
            await trio.sleep(limits.JANITOR_PERIOD_S)
            now = trio.current_time()
            self.hub.tick(now)
            for conversation in self._table:
                conversation.tick(now)

    async def stop(self) -> None:
        """End all conversations in order; returns when they have ended, or at the deadline."""
        self._stopping = True
        with trio.move_on_after(limits.SHUTDOWN_S + 1.0):
            async with trio.open_nursery() as nursery:
                for conversation in self._table:
                    nursery.start_soon(self._table.close, conversation.id)
        self.hub.close()
