"""Output that is too large to be shown goes into a blob, while it comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType

import trio

from vaala.tools import limits
from vaala.tools.text import clean_line, size_text
from vaala_protocol.ids import new_id
from vaala_storage.blobs import BlobWriter

OpenBlob = Callable[[str], AbstractAsyncContextManager[BlobWriter]]
"""Opens the blob of a key for writing; `BlobStorage.writer` of a conversation's path."""


class SavedOutput:
    """Takes all of an output, up to a cap. Small output makes no blob.

    A storage that fails costs the blob and not the command: nothing is taken after it, and `note`
    says why. Leaving the context without `finish` leaves no blob.
    """

    def __init__(self, open_blob: OpenBlob) -> None:
        self.key: str | None = None
        """The blob, once it is durable."""
        self.note = ""
        """Why there is no blob with all of the output; empty when there is, or need be none."""
        self._open_blob = open_blob
        self._context = AsyncExitStack()
        self._name = new_id()
        self._buffer = bytearray()
        self._taken = 0
        self._writer: BlobWriter | None = None
        self._failed = False

    async def __aenter__(self) -> SavedOutput:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._context.__aexit__(kind, error, trace)

    async def take(self, data: bytes) -> None:
        """Keep the next bytes. Cancel: the blob is void."""
        room = limits.COMMAND_SAVED_BYTES_MAX - self._taken
        if self._failed or not data:
            return
        if len(data) > room:
            kept = size_text(limits.COMMAND_SAVED_BYTES_MAX, "byte")
            self.note = f"Only the first {kept} of the output were saved."
        self._buffer += data[:room]
        self._taken += len(data[:room])
        full = limits.COMMAND_OUTPUT_BYTES_MAX
        if self._writer is not None:
            full = limits.COMMAND_SAVE_BUFFER_BYTES
        if len(self._buffer) > full:
            await self._attempt(self._flush)

    async def finish(self) -> None:
        """Make the blob durable, if there is one to be."""
        if self._writer is not None and not self._failed:
            await self._attempt(self._commit)

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            with trio.fail_after(limits.COMMAND_SAVE_S):
                await work()
        except Exception as error:  # whatever a storage says, the command's result is given
            self._failed = True
            self._buffer.clear()
            self.note = f"The output could not be saved: {clean_line(str(error), 200)}."

    async def _flush(self) -> None:
        if self._writer is None:
            self._writer = await self._context.enter_async_context(self._open_blob(self._name))
        data, self._buffer = bytes(self._buffer), bytearray()
        await self._writer.write(data)

    async def _commit(self) -> None:
        assert self._writer is not None
        await self._flush()
        await self._writer.commit()
        self.key = self._name
