"""Deleting conversations for good: first out of sight in one step, then bit by bit."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod

import trio

from vaala.dao.data_dir import DataDir, sync_directory
from vaala_protocol.ids import new_id
from vaala_storage.blobs import BlobStorage
from vaala_storage.errors import NotFound, StorageFailed
from vaala_storage.log import LogStorage


class Trash(ABC):
    @abstractmethod
    async def discard(self, path: str) -> None:
        """Put a conversation out of sight, durably; raises `NotFound`, `StorageFailed`."""

    @abstractmethod
    async def empty(self) -> None:
        """Remove what was discarded, also by an earlier run that did not come to it."""


class StoredTrash(Trash):
    """For stores that remove a path in one step themselves."""

    def __init__(self, log: LogStorage, blobs: BlobStorage) -> None:
        self._log = log
        self._blobs = blobs

    async def discard(self, path: str) -> None:
        await self._log.streams(path)
        await self._log.delete_path(path)
        await self._blobs.delete_path(path)

    async def empty(self) -> None:
        pass


class DirectoryTrash(Trash):
    """For conversations that are directories: the tombstone is a rename to ``trash/``."""

    def __init__(self, directory: DataDir, log: LogStorage) -> None:
        self._directory = directory
        self._log = log

    async def discard(self, path: str) -> None:
        await self._log.streams(path)
        await self._log.release(path)
        await trio.to_thread.run_sync(self._move, path)

    async def empty(self) -> None:
        await trio.to_thread.run_sync(self._remove_all, abandon_on_cancel=True)

    def _move(self, path: str) -> None:
        source = self._directory.conversations / path
        try:
            source.rename(self._directory.trash / f"{path}.{new_id()}")
            for parent in (self._directory.trash, self._directory.conversations):
                sync_directory(parent)
        except FileNotFoundError as error:
            raise NotFound(f"{path}: no such conversation") from error
        except OSError as error:
            raise StorageFailed(f"{path}: cannot be moved to the trash: {error}") from error

    def _remove_all(self) -> None:
        for entry in self._directory.trash.iterdir():
            shutil.rmtree(entry, ignore_errors=True)
