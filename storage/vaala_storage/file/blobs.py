"""`FileBlobs`: a `BlobStorage` of plain files, in the ``blobs`` directory of each path."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from vaala_storage.blob_rules import WriterState, check_range
from vaala_storage.blobs import BlobStorage, BlobWriter
from vaala_storage.errors import ReadOnly, StorageError
from vaala_storage.file.blob_file import BlobFile, pieces
from vaala_storage.file.layout import BLOBS, Layout, is_name
from vaala_storage.file.pool import Pool, open_pool
from vaala_storage.file.publish import Publisher
from vaala_storage.file.system import SYSTEM_FILES, Files
from vaala_storage.limits import BLOB_PIECE_BYTES_MAX, CALL_THREADS_MAX
from vaala_storage.names import check_name

T = TypeVar("T")


@asynccontextmanager
async def open_file_blobs(
    root: str | os.PathLike[str], *, read_only: bool = False, files: Files = SYSTEM_FILES
) -> AsyncGenerator[FileBlobs]:
    """Open the blobs in ``root``; the same root may hold a `FileLog` of the same paths.

    The root is made when it is not there, and what a crash left half written is removed, unless
    ``read_only``.
    """
    layout = Layout.of(files, root)
    async with open_pool(files, "vaala-blob", CALL_THREADS_MAX) as pool:
        blobs = FileBlobs(layout, pool, read_only=read_only)
        if not read_only:
            await blobs.sweep()
        yield blobs


class FileBlobs(BlobStorage):
    """Made by `open_file_blobs`."""

    def __init__(self, layout: Layout, pool: Pool, *, read_only: bool) -> None:
        self._layout = layout
        self._files = layout.files
        self._publisher = Publisher(layout, f"{layout.root}/.blobs")
        self._pool = pool
        self._read_only = read_only

    async def sweep(self) -> None:
        """Make the root and remove what a crash left half written; called at open."""
        await self._pool.call(self._publisher.sweep, self._layout.root, cancellable=False)

    async def put(self, path: str, key: str, data: bytes) -> None:
        async with self.writer(path, key) as writer:
            await writer.write(data)
            await writer.commit()

    @asynccontextmanager
    async def writer(self, path: str, key: str) -> AsyncGenerator[BlobWriter]:
        self._check_writable(path)
        writer = FileBlobWriter(self._blob(path, key), self._publisher, self._pool)
        try:
            yield writer
        finally:
            await writer.discard()

    async def get(
        self, path: str, key: str, *, offset: int = 0, length: int | None = None
    ) -> bytes:
        check_range(offset, length)

        def work(handle: int) -> bytes:
            end = self._files.state(handle).size
            if length is not None:
                end = min(end, offset + length)
            return b"".join(pieces(self._files, handle, offset, end))

        return await self._open(path, key, work)

    async def size(self, path: str, key: str) -> int:
        return await self._open(path, key, lambda handle: self._files.state(handle).size)

    async def keys(self, path: str) -> AsyncIterator[str]:
        directory = self._directory(path)
        for key in await self._pool.call(lambda: self._keys(directory), path, cancellable=True):
            yield key

    async def link(self, source: str, target: str) -> None:
        self._check_writable(target)
        old, new = self._directory(source), self._directory(target)
        keys = await self._pool.call(lambda: self._keys(old), source, cancellable=True)
        for key in keys:
            await self._pool.call(self._take(source, target, key), target, cancellable=False)
        if keys:
            await self._pool.call(lambda: self._layout.sync_names(new), target, cancellable=False)

    def _take(self, source: str, target: str, key: str) -> Callable[[], None]:
        blob = self._blob(target, key)
        other = self._blob(source, key).filename
        return lambda: blob.take(other, self._publisher.place())

    async def delete_path(self, path: str) -> None:
        self._check_writable(path)
        directory = self._directory(path)
        await self._pool.call(lambda: self._publisher.delete(directory), path, cancellable=False)

    def _check_writable(self, path: str) -> None:
        if self._read_only:
            raise ReadOnly(f"{path}: the store was opened for reading")

    def _directory(self, path: str) -> str:
        return f"{self._layout.directory(path)}/{BLOBS}"

    def _blob(self, path: str, key: str) -> BlobFile:
        check_name(key)
        self._layout.directory(path)
        return BlobFile(self._layout, path, key)

    def _keys(self, directory: str) -> list[str]:
        try:
            entries = self._files.list_directory(directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(e.name for e in entries if not e.is_directory and is_name(e.name))

    async def _open(self, path: str, key: str, view: Callable[[int], T]) -> T:
        blob = self._blob(path, key)

        def work() -> T:
            handle = self._files.open_read(blob.filename)
            try:
                return view(handle)
            finally:
                self._files.close(handle)

        return await self._pool.call(work, blob.label, cancellable=True)


class FileBlobWriter(BlobWriter):
    """Made by `FileBlobs.writer`; writes under a hidden name until `commit`."""

    def __init__(self, blob: BlobFile, publisher: Publisher, pool: Pool) -> None:
        self._blob = blob
        self._files = blob.files
        self._publisher = publisher
        self._pool = pool
        self._open: tuple[int, str] | None = None
        self._working = False
        self._state = WriterState(blob.label)

    async def write(self, data: bytes) -> None:
        with self._state.writing():
            for start in range(0, len(data), BLOB_PIECE_BYTES_MAX):
                piece = data[start : start + BLOB_PIECE_BYTES_MAX]
                await self._call(self._writing(piece))

    def _writing(self, piece: bytes) -> Callable[[int, str], None]:
        return lambda handle, _: self._blob.write(handle, piece)

    async def commit(self) -> None:
        with self._state.committing():
            await self._call(self._blob.commit)

    async def discard(self) -> None:
        """Close the file, and remove it unless it was committed; called at the end."""
        if self._open is None or self._working:
            return  # a call that never came back still owns the descriptor
        handle, hidden = self._open
        with trio.CancelScope(shield=True), contextlib.suppress(StorageError):
            # What cannot be removed now is swept when the root is opened next.
            await self._pool.call(
                lambda: self._remove(handle, hidden), self._blob.label, cancellable=False
            )

    async def _call(self, use: Callable[[int, str], None]) -> None:
        def work() -> None:
            self._working = True
            try:
                if self._open is None:
                    hidden = self._publisher.place()
                    self._open = self._files.open_new(hidden), hidden
                use(*self._open)
            finally:
                self._working = False

        await self._pool.call(work, self._blob.label, cancellable=False)

    def _remove(self, handle: int, hidden: str) -> None:
        self._files.close(handle)
        if not self._state.committed:
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(hidden)
