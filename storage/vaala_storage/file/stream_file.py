"""The blocking work on one stream's file; a thread of storage runs it."""

from __future__ import annotations

import contextlib
import re

from msgspec import Struct

from vaala_storage.errors import NotFound, StorageFull, StreamBroken
from vaala_storage.file.layout import SUFFIX, Layout
from vaala_storage.file.mapping import storage_error
from vaala_storage.file.pool import Job
from vaala_storage.file.scan import Span, last_batch
from vaala_storage.file.system import Files
from vaala_storage.limits import BATCH_BYTES_MAX, TORN_FILES_MAX
from vaala_storage.log import Damage

_TORN = re.compile(r"\.torn-([0-9]+)-([0-9]+)")


class Position(Struct, frozen=True):
    """The durable end of a stream: ``end`` in bytes, ``last`` as a sequence."""

    end: int
    last: int
    exists: bool = True
    """False: the file is made by the first append."""


class Moved(Exception):
    """The file is not where memory left it: another writer, or it was removed."""


class StreamFile(Struct, frozen=True):
    layout: Layout
    path: str
    name: str

    @property
    def files(self) -> Files:
        return self.layout.files

    @property
    def directory(self) -> str:
        return self.layout.directory(self.path)

    @property
    def label(self) -> str:
        """Path and stream, for messages."""
        return f"{self.path}/{self.name}"

    @property
    def filename(self) -> str:
        return f"{self.directory}/{self.name}{SUFFIX}"

    def load(self, job: Job) -> tuple[Position, tuple[Damage, ...]]:
        """Find the end of the stream and cut what is torn behind it; raises `NotFound`.

        What is found is made durable: the process that wrote it may have been killed before its
        sync, and an entry that somebody builds on must not vanish with the power.
        """
        try:
            handle = self.files.open_append(self.filename, create=False)
        except FileNotFoundError:
            if not self.layout.holds_streams(self.directory):
                raise NotFound(f"{self.label}: no such path") from None
            self.layout.sync_names(self.directory)
            return Position(0, 0, exists=False), ()
        try:
            size = self.files.state(handle).size
            found = last_batch(Span(self.files, handle, size))
            position = Position(0, 0) if found is None else Position(*found)
            kept = None
            if position.end < size:
                kept = self._keep(handle, position.end, size)
                job.check()
                self.files.truncate(handle, position.end)
            self.files.sync_data(handle)
        finally:
            self.files.close(handle)
        self.layout.sync_names(self.directory)
        if kept is None:
            return position, ()
        detail = f"{size - position.end} torn bytes at byte {position.end}, kept in {kept}"
        return position, (Damage(position.last + 1, None, detail),)

    def make_durable(self) -> None:
        """Sync what is there, also what is torn.

        Nothing when the file has been removed or may not be read: then nobody can build on it.
        """
        try:
            handle = self.files.open_read(self.filename)
        except (FileNotFoundError, PermissionError):
            return
        try:
            self.files.sync_data(handle)
        finally:
            self.files.close(handle)

    def roll_back(self, position: Position, job: Job) -> None:
        """Remove what a failed append left behind ``position``; `load` comes after it.

        After a failed sync the system may show bytes that the device does not hold and report the
        next sync as good (they count as written). Cutting them is the one state that is certain;
        their callers have been told that the outcome is unknown.
        """
        try:
            handle = self.files.open_append(self.filename, create=False)
        except FileNotFoundError:
            return
        try:
            if self.files.state(handle).size > position.end:
                job.check()
                self.files.truncate(handle, position.end)
        finally:
            self.files.close(handle)

    def flush(self, handle: int | None, position: Position, line: bytes, job: Job) -> int:
        """Write a line at the end and return, once it is durable, the open handle.

        ``handle`` is this call's until it returns it; on an error it has been closed.
        """
        if handle is None:
            handle = self._open(position)
        try:
            state = self.files.state(handle)
            if state.size != position.end or state.links == 0:
                raise Moved
            job.check()
            self._write(job, handle, position, line)
            self._sync(handle, position)
        except BaseException:
            with contextlib.suppress(OSError):
                self.files.close(handle)
            raise
        return handle

    def _open(self, position: Position) -> int:
        try:
            return self.files.open_append(self.filename, create=not position.exists)
        except FileNotFoundError:
            raise Moved from None
        except OSError as error:
            raise storage_error(error, self.label) from error

    def _write(self, job: Job, handle: int, position: Position, line: bytes) -> None:
        try:
            written = self.files.write(handle, line)
        except OSError as error:
            self._undo(job, handle, position)
            raise storage_error(error, self.label) from error
        if written < len(line):
            self._undo(job, handle, position)
            raise StorageFull(f"{self.label}: no space: {written} of {len(line)} bytes fit")

    def _undo(self, job: Job, handle: int, position: Position) -> None:
        job.check()
        try:
            self.files.truncate(handle, position.end)
            if not position.exists:
                self.files.remove(self.filename)
        except OSError as error:
            raise StreamBroken(
                f"{self.label}: a failed write could not be undone ({error.strerror}): recover it"
            ) from error

    def _sync(self, handle: int, position: Position) -> None:
        try:
            self.files.sync_data(handle)
            if not position.exists:
                self.files.sync_directory(self.directory)
        except OSError as error:
            raise StreamBroken(
                f"{self.label}: sync failed ({error.strerror}): recover it"
            ) from error

    def _keep(self, handle: int, start: int, end: int) -> str:
        """Copy torn bytes to a file beside the stream, durably; return its name."""
        kept = self._torn_files()
        for name in [name for _, name in kept[: max(0, len(kept) + 1 - TORN_FILES_MAX)]]:
            self.files.remove(f"{self.directory}/{name}")
        number = sum(1 for (offset, _), _ in kept if offset == start)
        names = {name for _, name in kept}
        while (name := f"{self.name}{SUFFIX}.torn-{start}-{number}") in names:
            number += 1
        copy = self.files.open_new(f"{self.directory}/{name}")
        try:
            while start < end:
                piece = self.files.read(handle, start, min(BATCH_BYTES_MAX, end - start))
                start += len(piece)
                if not piece or self.files.write(copy, piece) < len(piece):
                    raise StorageFull(f"{self.label}: no space to keep its torn end aside")
            self.files.sync_data(copy)
        except BaseException:
            with contextlib.suppress(OSError):
                self.files.remove(f"{self.directory}/{name}")
            raise
        finally:
            self.files.close(copy)
        self.files.sync_directory(self.directory)
        return name

    def _torn_files(self) -> list[tuple[tuple[int, int], str]]:
        """Return the torn ends kept so far, oldest first: by offset, then by number."""
        found: list[tuple[tuple[int, int], str]] = []
        prefix = f"{self.name}{SUFFIX}"
        for entry in self.files.list_directory(self.directory):
            if entry.name.startswith(prefix):
                match = _TORN.fullmatch(entry.name[len(prefix) :])
                if match is not None:
                    found.append(((int(match[1]), int(match[2])), entry.name))
        return sorted(found)

    def remove(self) -> None:
        """Remove the stream and the torn ends beside it; no error when there is none."""
        try:
            torn = self._torn_files()
        except FileNotFoundError:
            return
        for name in [f"{self.name}{SUFFIX}", *(name for _, name in torn)]:
            with contextlib.suppress(FileNotFoundError):
                self.files.remove(f"{self.directory}/{name}")
        self.files.sync_directory(self.directory)
