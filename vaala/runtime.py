"""`Runtime`: the definitions, the store, and the table of open conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
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
from vaala.joined import Joined
from vaala.room import Openings
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
        self._openings = Openings(self._table)
        self._created: dict[str, ConversationLog] = {}
        self._by_client: dict[str, str] = {}
        """The conversations that clients have made, by the client's id for it, oldest first."""
        self._creating: Joined[str] = Joined(nursery)
        """By the client's id for it."""
        self._deleting: Joined[None] = Joined(nursery)
        self._file_threads = trio.CapacityLimiter(limits.NAMED_FILE_THREADS_MAX)
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
        `BadRequest` for an unknown agent or executor and for what cannot be stored. Cancel: it is
        made all the same; with a ``client_id`` it can be found.
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
            made = await self._creating.run(info.id, partial(self._create, info, root))
        else:
            storable(client_id, "the client id", limits.CLIENT_ID_BYTES_MAX)
            create = partial(self._create_for, client_id, info, root)
            made = await self._creating.run(client_id, create)
        return ConversationHandle(self, made)

    async def _create_for(self, client_id: str, info: ConversationInfo, root: SessionInfo) -> str:
        known_id = self._by_client.get(client_id)
        if known_id is not None and await self._is_there(known_id):
            return known_id
        made = await self._create(info, root)
        self._by_client[client_id] = made
        if len(self._by_client) > limits.CREATED_REMEMBERED_MAX:
            del self._by_client[next(iter(self._by_client))]
        return made

    async def _create(self, info: ConversationInfo, root: SessionInfo) -> str:
        self._created[info.id] = await self.store.create(info, root)
        await self._table.get(info.id)
        self._openings.opened(trio.current_time())
        return info.id

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
        self._check_stays(conversation_id)
        conversation = self._table.find(conversation_id)
        if conversation is None:
            conversation = await self._table.get(conversation_id)
            self._openings.opened(trio.current_time())
        conversation.used_at = trio.current_time()
        return conversation

    async def delete_conversation(self, conversation_id: str) -> None:
        """End what runs in a conversation and delete it for good.

        Those who watch it are told ``deleted`` when it is gone, ``closing`` when that failed. Who
        asks for it meanwhile gets the same answer. Raises `NotFound`, `NotDurable`. Cancel: it is
        deleted all the same.
        """
        self._check_running()
        await self._deleting.run(conversation_id, partial(self._delete, conversation_id))

    async def _delete(self, conversation_id: str) -> None:
        conversation = self._table.find(conversation_id)
        empty = conversation is not None and conversation.log.staged
        if conversation is not None:
            conversation.deleting = True
        reason = "closing"
        try:
            await self._table.close(conversation_id)
            with storing(f"conversation {conversation_id} could not be deleted"):
                await self.store.delete(conversation_id)
            reason = "deleted"
        except NotFound:
            if not empty:
                raise
            reason = "deleted"  # nothing of it was on disk, and it is gone with its closing
        finally:
            if conversation is not None:
                conversation.stream.close(reason)
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
        new = await import_file(self.store, path, self._file_threads)
        self.hub.conversation_changed(new)
        return ConversationHandle(self, new)

    async def export_conversation(self, conversation_id: str, path: str) -> int:
        """Write a conversation to a new file; see `vaala.transfer.export_file`."""
        self._check_running()
        return await export_file(self.store, conversation_id, path, self._file_threads)

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

    def status(self, most: int | None = None) -> tuple[ConversationActivity, ...]:
        """Return what is alive now, oldest conversation first.

        Of more than ``most``: those in which something runs, then those that were used last.
        """

        def wanted(one: Conversation) -> tuple[bool, float]:
            return any(session.busy for session in one.sessions.values()), one.used_at

        shown = list(self._table)
        if most is not None and len(shown) > most:
            shown = sorted(shown, key=wanted, reverse=True)[:most]
        return tuple(activity_of(one) for one in sorted(shown, key=lambda one: one.id))

    def _live(self, conversation_id: str) -> ConversationInfo | None:
        conversation = self._table.find(conversation_id)
        return None if conversation is None else conversation.info

    def _check_running(self) -> None:
        if self._stopping:
            raise Stopping("the runtime is closing")

    def _check_stays(self, conversation_id: str) -> None:
        if conversation_id in self._deleting:
            raise NotFound(f"conversation {conversation_id} is being deleted")

    @asynccontextmanager
    async def _open_conversation(self, conversation_id: str) -> AsyncGenerator[Conversation]:
        # Also for who has waited for it to close, to open it again.
        self._check_stays(conversation_id)
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
            for number, conversation in enumerate(self._table):
                conversation.tick(now)
                if number % limits.TICKS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()

    async def stop(self) -> None:
        """End all conversations in order; returns when they have ended, or at the deadline."""
        self._stopping = True
        with trio.move_on_after(limits.SHUTDOWN_S + 1.0):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._creating.idle)
                nursery.start_soon(self._deleting.idle)
                for conversation in self._table:
                    nursery.start_soon(self._table.close, conversation.id)
        self.hub.close()
