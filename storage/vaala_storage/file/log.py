"""`FileLog`: a `LogStorage` of plain files, one directory for each path."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from vaala_storage.cursors import check_limit
from vaala_storage.entry_rules import Ask, check_new
from vaala_storage.errors import NotFound, ReadOnly, StorageFailed
from vaala_storage.file.handles import Handles, open_files_max
from vaala_storage.file.layout import Layout
from vaala_storage.file.lines import encode_body
from vaala_storage.file.pages import read_page
from vaala_storage.file.pool import Pool, open_pool
from vaala_storage.file.publish import Publisher
from vaala_storage.file.scan import Span, last_batch
from vaala_storage.file.stream import Stream
from vaala_storage.file.system import SYSTEM_FILES, Files
from vaala_storage.file.table import StreamTable
from vaala_storage.file.watch import Watch, beside
from vaala_storage.limits import CALL_THREADS_MAX, STREAMS_KNOWN_MAX, SYNC_THREADS_MAX
from vaala_storage.log import Damage, Entry, LogStorage, Page, PathPage

T = TypeVar("T")


@asynccontextmanager
async def open_file_log(
    root: str | os.PathLike[str], *, read_only: bool = False, files: Files = SYSTEM_FILES
) -> AsyncGenerator[FileLog]:
    """Open the log in ``root``, which is made when it is not there.

    The caller holds whatever lock makes it the only writer; `Conflict` catches one that does not.
    ``read_only`` opens it beside a running writer: nothing is made or changed, and the entries of
    an append that is under way may be seen before they are durable. Leaving finishes what has
    begun, also on a cancel, for `SYNC_SILENCE_S_MAX` at the longest. Raises `StorageFailed` and
    `ReadOnly` when the root cannot be used.
    """
    layout, watch = Layout.of(files, root), Watch()
    async with (
        open_pool(files, "vaala-sync", SYNC_THREADS_MAX) as syncs,
        open_pool(files, "vaala-log", CALL_THREADS_MAX) as calls,
        beside(watch.run),
    ):
        log = FileLog(layout, syncs, calls, watch, read_only=read_only)
        if not read_only:
            await log.sweep()
        try:
            yield log
        finally:
            with trio.CancelScope(shield=True):
                await log.settle()


class FileLog(LogStorage):
    """Made by `open_file_log`. Methods raise `StorageError`s, and ``ValueError`` for bad names.

    A path with a part named "blobs" is refused with ``ValueError``: that is where blobs are. A
    path cannot be made where other paths are already below it.
    """

    def __init__(
        self, layout: Layout, syncs: Pool, calls: Pool, watch: Watch, *, read_only: bool
    ) -> None:
        self._layout = layout
        self._files = layout.files
        self._publisher = Publisher(layout, f"{layout.root}/.log")
        self._calls = calls
        self._read_only = read_only
        self._handles = Handles(layout.files, syncs, open_files_max())
        self._streams = StreamTable(layout, syncs, self._handles, watch, STREAMS_KNOWN_MAX)
        self._closed = False

    async def append(
        self, path: str, stream: str, entries: Sequence[Entry], *, expected: int
    ) -> int:
        self._check_writable(path)
        body = encode_body(entries, f"{path}/{stream}")
        return await self._streams.get(path, stream).append(body, len(entries), expected)

    async def create(self, path: str, streams: Mapping[str, Sequence[Entry]]) -> None:
        self._check_writable(path)
        check_new(path, streams)
        await self._calls.call(
            lambda: self._publisher.create(path, streams), path, cancellable=False
        )
        # A directory that was removed by hand may have left streams known by the old files.
        await self._drop(self._streams.of(path))

    async def read(
        self,
        path: str,
        stream: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 1000,
        reverse: bool = False,
    ) -> Page:
        check_limit(limit)
        ask = Ask(after or 0, before, limit, reverse)
        return await self._look(path, stream, lambda span: read_page(span, ask))

    async def last(self, path: str, stream: str) -> int:
        found = await self._look(path, stream, last_batch)
        return 0 if found is None else found[1]

    async def recover(self, path: str, stream: str) -> tuple[int, tuple[Damage, ...]]:
        self._check_writable(path)
        return await self._streams.get(path, stream).recover()

    async def make_durable(self, path: str) -> None:
        """See `LogStorage.make_durable`; costs one sync for each stream and for each directory."""
        self._check_writable(path)
        directory = self._layout.directory(path)
        try:
            for name in await self.streams(path):
                file = self._streams.file(path, name)
                await self._calls.call(file.make_durable, file.label, cancellable=True)
            await self._calls.call(
                lambda: self._layout.sync_names(directory), path, cancellable=True
            )
        except NotFound:
            return

    async def streams(self, path: str) -> tuple[str, ...]:
        self._check_open(path)
        return await self._calls.call(lambda: self._layout.streams(path), path, cancellable=True)

    async def paths(self, *, cursor: str | None = None, limit: int = 1000) -> PathPage:
        self._check_open("paths")
        check_limit(limit)
        return await self._calls.call(
            lambda: self._layout.paths(cursor, limit), "paths", cancellable=True
        )

    async def delete_stream(self, path: str, stream: str) -> None:
        self._check_writable(path)
        known = self._streams.get(path, stream)
        await self._rest((known,))
        await self._calls.call(known.file.remove, f"{path}/{stream}", cancellable=False)
        await self._drop((known,))

    async def delete_path(self, path: str) -> None:
        self._check_writable(path)
        directory = self._layout.directory(path)
        await self._rest(self._streams.within(path))
        await self._calls.call(lambda: self._publisher.delete(directory), path, cancellable=False)
        await self._drop(self._streams.within(path))

    async def release(self, path: str) -> None:
        known = self._streams.of(path)
        await self._rest(known)
        self._streams.drop(stream for stream in known if stream.forgettable)

    async def sweep(self) -> None:
        """Make the root and remove what a crash left half made; called at open."""
        await self._calls.call(self._publisher.sweep, self._layout.root, cancellable=False)

    async def settle(self) -> None:
        """Refuse what comes, finish what has begun, close the files; called at the end."""
        self._closed = True
        await self._streams.settle()
        self._handles.drop_all()

    def _check_open(self, what: str) -> None:
        if self._closed:
            raise StorageFailed(f"{what}: the store has been closed")

    def _check_writable(self, path: str) -> None:
        self._check_open(path)
        if self._read_only:
            raise ReadOnly(f"{path}: the store was opened for reading")

    async def _look(self, path: str, stream: str, view: Callable[[Span], T]) -> T:
        """Return a view of the stream's durable bytes, opened for this call alone."""
        self._check_open(path)
        file = self._streams.file(path, stream)
        known = self._streams.find(path, stream)
        position = None if known is None else known.position

        def work() -> T:
            handle = self._files.open_read(file.filename)
            try:
                end = self._files.state(handle).size
                if position is not None:
                    end = min(end, position.end)
                return view(Span(self._files, handle, end))
            finally:
                self._files.close(handle)

        return await self._calls.call(work, file.label, cancellable=True)

    async def _rest(self, streams: Iterable[Stream]) -> None:
        """Wait until nothing of these streams is in flight, and close their files."""
        for stream in streams:
            await stream.idle()
            stream.forget()

    async def _drop(self, streams: Iterable[Stream]) -> None:
        """Forget deleted streams altogether, also broken ones."""
        for stream in streams:
            await self._rest((stream,))
            # At once: an append that came while another was waited for would have two owners.
            self._streams.drop((stream,))
