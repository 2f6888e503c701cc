"""What a session keeps beside its items: blobs, and what it knows of the files it has read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from vaala.dao.blob_access import Blobs
from vaala.dao.state import FileRead
from vaala.tools.base import ReadRecord, ToolFailure
from vaala_protocol.errors import Refused
from vaala_storage.blobs import BlobWriter
from vaala_storage.errors import AlreadyExists, StorageError


class SessionFiles:
    """``reads`` is changed by the tools; it reaches the log with the next checkpoint.

    What a crash loses of it is safe to lose: the agent is told to read the file again.
    """

    def __init__(self, blobs: Blobs, reads: Mapping[str, FileRead]) -> None:
        self._blobs = blobs
        self.reads = {
            path: ReadRecord(read.size, read.mtime_ns, read.digest) for path, read in reads.items()
        }

    def noted_reads(self) -> dict[str, FileRead]:
        """Return the read records as a checkpoint stores them."""
        return {
            path: FileRead(size=read.size, mtime_ns=read.mtime_ns, digest=read.digest)
            for path, read in self.reads.items()
        }

    async def save(self, data: bytes) -> str:
        """Keep bytes with the conversation, durably; raises `ToolFailure`."""
        try:
            return await self._blobs.put(data)
        except (StorageError, Refused) as error:
            raise ToolFailure(f"The output could not be kept: {error}") from error

    async def keep(self, key: str, data: bytes) -> None:
        """Keep bytes under a key of the caller's, durably, unless there are such already.

        Raises `ToolFailure`.
        """
        try:
            async with self._blobs.writer(key) as (_, writer):
                await writer.write(data)
                await writer.commit()
        except AlreadyExists:
            pass
        except (StorageError, Refused, ValueError) as error:
            raise ToolFailure(f"The output could not be kept: {error}") from error

    async def load(self, key: str, offset: int, length: int) -> bytes:
        """Return bytes of a blob of the conversation; raises `ToolFailure`."""
        try:
            return await self._blobs.get(key, offset=offset, length=length)
        except (StorageError, Refused) as error:
            raise ToolFailure(f"{key} could not be read: {error}") from error

    @asynccontextmanager
    async def open_blob(self, key: str) -> AsyncGenerator[BlobWriter]:
        """Write a blob piece by piece; without its ``commit`` nothing is left."""
        async with self._blobs.writer(key) as (_, writer):
            yield writer
