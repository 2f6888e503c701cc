"""`Store`: everything of conversations that a runtime persists, for the one that owns them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import trio

from vaala.dao.archive_read import Source
from vaala.dao.conversation_log import ConversationLog, metadata_start
from vaala.dao.copying import copy_conversation, fork_after_turn, fork_conversation
from vaala.dao.entries import METADATA_STREAM, ROOT_STREAM
from vaala.dao.home import Shared
from vaala.dao.importing import import_conversation
from vaala.dao.index import Index
from vaala.dao.index_writer import IndexFailed
from vaala.dao.limits import SETTLING_S_MAX
from vaala.dao.metadata import metadata_of
from vaala.dao.pages import ReindexReport
from vaala.dao.reader import Reader
from vaala.dao.reconcile import Reconciler
from vaala.dao.session_log import session_start
from vaala.dao.trash import Trash
from vaala_protocol.errors import Busy, NotFound
from vaala_protocol.state import ConversationInfo, SessionInfo
from vaala_storage import errors


class Store(Reader):
    """Made by `open_store` and `open_memory_store`; the only writer of its conversations."""

    def __init__(self, shared: Shared, index: Index, reconciler: Reconciler, trash: Trash) -> None:
        super().__init__(shared, index.db, read_only=None)
        self._index = index
        self._reconciler = reconciler
        self._trash = trash
        self.is_in_place: Callable[[], bool] = lambda: True
        """Tells, blocking, whether the data is still where it was opened: then nobody else owns it.
        """

    async def create(self, info: ConversationInfo, root: SessionInfo) -> ConversationLog:
        """Begin a conversation, in memory until its root session's first append.

        That append moves it to disk in one step; before, it is not listed, and closing it leaves
        nothing. An ephemeral one stays in memory for as long as the store is open.
        """
        home = self._home(info.id, staged=True)
        home.ephemeral = info.ephemeral
        home.updated_at = info.updated_at
        metadata = metadata_of(info, home.origin)
        streams = {
            METADATA_STREAM: metadata_start(metadata),
            ROOT_STREAM: session_start(root, home.origin),
        }
        await self._shared.staged.log.create(info.id, streams)
        self._open.add(info.id)
        last = len(streams[METADATA_STREAM])
        return ConversationLog(home, metadata, last, self._open.discard)

    async def delete(self, conversation_id: str) -> None:
        """Remove a conversation for good; it is gone, durably, when this returns.

        Raises `Busy` while it is open, `NotFound`. A crash in between is finished at start-up.
        """
        if conversation_id in self._open:
            raise Busy(f"conversation {conversation_id} is open: close it first")
        try:
            if await self._is_staged(conversation_id):
                await self._shared.staged.log.delete_path(conversation_id)
                await self._shared.staged.blobs.delete_path(conversation_id)
                return
            await self._trash.discard(conversation_id)
        except (errors.NotFound, ValueError) as error:  # or a name that storage needs itself
            raise NotFound(f"there is no conversation {conversation_id}") from error
        self._index.forget(conversation_id)
        self._reconciler.empty_trash()

    async def copy(self, conversation_id: str) -> str:
        """Make a second conversation of all there is of this one; return its id.

        Neither what waits in the queue nor what was allowed comes along. Raises `NotFound`, and
        the errors of `LogStorage.append`; a cancel leaves nothing.
        """
        return await copy_conversation(self._shared, await self._source(conversation_id))

    async def fork(
        self, conversation_id: str, *, at: int | None = None, turn_id: str | None = None
    ) -> str:
        """Make a conversation that begins like this one; return its id.

        It ends with the turn ``turn_id``, with the step that holds the item at ``at``, or, without
        either, with the last step that has ended. Blobs are shared where the file system can.
        Otherwise like `copy`. Raises `Busy` for a turn that has not ended, `NotFound` for one that
        is not there.
        """
        source = await self._source(conversation_id)
        if turn_id is not None:
            return await fork_after_turn(self._shared, source, turn_id)
        return await fork_conversation(self._shared, source, at)

    async def import_(self, source: Source) -> str:
        """Make a conversation of what `export` wrote; return its new id.

        It opens as a foreign one. Raises `BadArchive`, and the errors of `LogStorage.append`;
        nothing is left then, or after a cancel.
        """
        return await import_conversation(self._shared, source)

    async def reindex(
        self, progress: Callable[[int, int | None], None] | None = None
    ) -> ReindexReport:
        """Make every row and document of the index anew from the log.

        Texts that have not changed are left as they are. ``progress`` gets how many conversations
        are done, and of how many (None: not known). Raises `StorageError` when the index cannot be
        written. A cancel leaves the rest as it was.
        """
        try:
            return await self._reconciler.reindex(progress)
        except IndexFailed as failed:
            raise failed.cause from failed

    async def settled(self) -> None:
        """Wait until the comparison of conversations with rows that follows opening is done."""
        await self._reconciler.settled.wait()

    async def _secure(self, conversation_id: str) -> None:
        """Make durable what a run that was killed may have left: we are about to build on it."""
        if self._reconciler.rebuilding or await self._index.left_open(conversation_id):
            with suppress(errors.ReadOnly):  # then nothing can be built on it either
                await self._shared.log.make_durable(conversation_id)
            self._index.stale(conversation_id)

    async def _read_behind(self) -> None:
        with trio.move_on_after(SETTLING_S_MAX):
            await self._reconciler.marks_settled.wait()
        await self._index.flush()

    def _is_complete(self) -> bool:
        return not self._reconciler.rebuilding and not self._index.behind
