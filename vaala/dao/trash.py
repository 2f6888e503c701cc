"""Deleting conversations for good: first out of sight in one step, then bit by bit."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class StoredTrash(Trash):
    """For stores that remove a path in one step themselves."""

    log: LogStorage
    blobs: BlobStorage

    async def discard(self, path: str) -> None:
        await self.log.streams(path)
        await self.log.delete_path(path)
        await self.blobs.delete_path(path)

    async def empty(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class DirectoryTrash(Trash):
    """For conversations that are directories: the tombstone is a rename to ``trash/``."""

    directory: DataDir
    log: LogStorage

    async def discard(self, path: str) -> None:
        await self.log.streams(path)
        await self.log.release(path)
        await trio.to_thread.run_sync(self._move, path)

    async def empty(self) -> None:
        await trio.to_thread.run_sync(self._remove_all, abandon_on_cancel=True)

    def _move(self, path: str) -> None:
        source = self.directory.conversations / path
        try:
            source.rename(self.directory.trash / f"{path}.{new_id()}")
            for parent in (self.directory.trash, self.directory.conversations):
                sync_directory(parent)
        except FileNotFoundError as error:
            raise NotFound(f"{path}: no such conversation") from error
        except OSError as error:
            raise StorageFailed(f"{path}: cannot be moved to the trash: {error}") from error

    def _remove_all(self) -> None:
        for entry in self.directory.trash.iterdir():
            shutil.rmtree(entry, ignore_errors=True)
