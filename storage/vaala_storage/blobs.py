"""`BlobStorage`: immutable bytes beside the streams of a path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager


class BlobWriter(ABC):
    """A blob being written; it exists for readers once it was committed.

    After a call that failed or was cancelled it can only be given up: every further one raises
    ``ValueError``, as after a commit.
    """

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Append bytes; raises `StorageFull`."""

    @abstractmethod
    async def commit(self) -> None:
        """Make the blob durable under its key; raises `AlreadyExists`, `StorageFull`."""


class BlobStorage(ABC):
    """Keys have the form of stream ids. Writing a key that exists raises `AlreadyExists`.

    A path may have blobs before it has streams; `LogStorage.create` of it keeps them. Bytes that a
    writer has not committed are never seen.
    """

    @abstractmethod
    async def put(self, path: str, key: str, data: bytes) -> None:
        """Store a blob; durable on return. Raises `AlreadyExists`, `StorageFull`."""

    @abstractmethod
    def writer(self, path: str, key: str) -> AbstractAsyncContextManager[BlobWriter]:
        """Write a blob piece by piece; leaving without `commit` (or by cancel) leaves nothing."""

    @abstractmethod
    async def get(
        self, path: str, key: str, *, offset: int = 0, length: int | None = None
    ) -> bytes:
        """Return bytes of a blob from ``offset``, fewer than ``length`` at its end.

        Raises `NotFound`, ``ValueError`` for a negative range.
        """

    @abstractmethod
    async def size(self, path: str, key: str) -> int:
        """Return a blob's size in bytes; raises `NotFound`."""

    @abstractmethod
    def keys(self, path: str) -> AsyncIterator[str]:
        """Yield the keys of a path, sorted; nothing for a path without blobs."""

    @abstractmethod
    async def link(self, source: str, target: str) -> None:
        """Make every blob of ``source`` also one of ``target``, without copying where it can.

        Durable on return. Keys that ``target`` has are left; a call that failed is made again.
        """

    @abstractmethod
    async def delete_path(self, path: str) -> None:
        """Remove every blob of a path; no error when there is none."""
