"""Conversations as archives in files of this machine."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import trio

from vaala import limits
from vaala.dao.store import Reader, Store
from vaala.named_file import NamedFile
from vaala_protocol.errors import BadRequest, NotDurable, Unreadable
from vaala_storage.errors import StorageError


async def export_file(
    reader: Reader, conversation_id: str, path: str, limiter: trio.CapacityLimiter
) -> int:
    """Write a conversation to a new file that only its owner can read; return its size in bytes.

    It is on disk when this returns. Raises `BadRequest` for a path that is not absolute, is taken
    or cannot be made, `NotFound`, `Unreadable`, and `NotDurable` for a full disk. When it fails,
    and on a cancel, no file is left. The threads that write are of ``limiter``.
    """
    target = _absolute(path)
    try:
        file = await trio.to_thread.run_sync(_create, target, limiter=limiter)
    except FileExistsError as error:
        raise BadRequest(f"{path} is there already; name another file") from error
    except (OSError, ValueError) as error:
        raise BadRequest(f"{path} cannot be written: {_why(error)}") from error
    out = _Buffered(file, limiter)
    try:
        with file:
            await reader.export(conversation_id, out.write)
            return await out.finish()
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise NotDurable(f"{path} could not be written: {_why(error)}") from error
        if isinstance(error, StorageError):
            raise Unreadable(f"conversation {conversation_id}: {error}") from error
        raise


async def import_file(store: Store, path: str, limiter: trio.CapacityLimiter) -> str:
    """Add a conversation from an archive and return its new id.

    Raises `BadRequest` for a file that cannot be read, `BadArchive`, `NotDurable`; nothing is left
    then, or after a cancel. The threads that read are of ``limiter``; one that hangs is left
    behind by a cancel.
    """
    source = _absolute(path)
    with NamedFile(limiter) as file:

        async def read(size: int) -> bytes:
            with _reading(path):
                return await file.read(size)

        with _reading(path):
            await file.open(source)
        with storing(f"{path} could not be imported"):
            return await store.import_(read)


@contextmanager
def _reading(path: str) -> Generator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise BadRequest(f"{path} cannot be read: {_why(error)}") from error


@contextmanager
def storing(what: str) -> Generator[None]:
    """Raise what storage says in the block as `NotDurable`, for a client."""
    try:
        yield
    except StorageError as error:
        raise NotDurable(f"{what}: {error}") from error


class _Buffered:
    """Gathers the pieces of an archive: each write to the file is a hop to a thread."""

    def __init__(self, file: BinaryIO, limiter: trio.CapacityLimiter) -> None:
        self._file = file
        self._limiter = limiter
        self._waiting = bytearray()
        self._size = 0

    async def write(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) >= limits.EXPORT_CHUNK_BYTES:
            await self._flush()

    async def finish(self) -> int:
        await self._flush()
        await trio.to_thread.run_sync(_sync, self._file, limiter=self._limiter)
        return self._size

    async def _flush(self) -> None:
        data, self._waiting = bytes(self._waiting), bytearray()
        await trio.to_thread.run_sync(self._file.write, data, limiter=self._limiter)
        self._size += len(data)


def _absolute(path: str) -> Path:
    target = Path(path)
    if not target.is_absolute():
        raise BadRequest(f"{path!r} is not an absolute path")
    return target


def _create(path: Path) -> BinaryIO:
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
    )


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
