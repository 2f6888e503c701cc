"""The blobs of one conversation: outputs too large for an item, images, files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from msgspec import Struct

from vaala.dao.home import Home
from vaala_protocol.errors import NotFound
from vaala_protocol.ids import new_id
from vaala_storage import errors
from vaala_storage.blobs import BlobWriter


class Blobs(Struct, frozen=True):
    """Scoped to the conversation; a staged one keeps its blobs in memory until it moves to disk.

    Write a blob before the entry that names it: it is durable when the call returns.
    """

    home: Home

    async def put(self, data: bytes) -> str:
        """Store bytes and return their new key; raises `StorageFull`."""
        self.home.check_writable()
        key = new_id()
        await self.home.put_blob(key, data)
        return key

    @asynccontextmanager
    async def writer(self, key: str | None = None) -> AsyncGenerator[tuple[str, BlobWriter]]:
        """Write a blob piece by piece under ``key`` or a new one; without `commit` nothing is left.

        A conversation that moves to disk meanwhile would leave the blob behind, so this is for
        sessions that have written something: what a tool puts out.
        """
        self.home.check_writable()
        key = key or new_id()
        async with self.home.blobs.writer(self.home.path, key) as writer:
            yield key, writer

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a blob; raises `NotFound`."""
        try:
            return await self.home.blobs.get(self.home.path, key, offset=offset, length=length)
        except (errors.NotFound, ValueError) as error:
            raise NotFound(f"conversation {self.home.path} has no blob {key[:80]!r}") from error

    async def size(self, key: str) -> int:
        """Return a blob's size in bytes; raises `NotFound`."""
        try:
            return await self.home.blobs.size(self.home.path, key)
        except (errors.NotFound, ValueError) as error:
            raise NotFound(f"conversation {self.home.path} has no blob {key[:80]!r}") from error
