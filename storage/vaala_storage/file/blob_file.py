"""The blocking work on one blob: written under a hidden name, then given its own."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from msgspec import Struct

from vaala_storage.errors import AlreadyExists, StorageFull
from vaala_storage.file.layout import BLOBS, Layout
from vaala_storage.file.system import Files, make_directories
from vaala_storage.limits import BLOB_PIECE_BYTES_MAX

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK, errno.ENOSYS}
"""What link(2) says where a file system has none, or a file has as many as it may."""


def pieces(files: Files, handle: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes from ``start`` to ``end``, or to the end of the file when that is first."""
    while start < end:
        piece = files.read(handle, start, min(BLOB_PIECE_BYTES_MAX, end - start))
        if not piece:
            return
        start += len(piece)
        yield piece


class BlobFile(Struct, frozen=True):
    layout: Layout
    path: str
    key: str

    @property
    def files(self) -> Files:
        return self.layout.files

    @property
    def directory(self) -> str:
        return f"{self.layout.directory(self.path)}/{BLOBS}"

    @property
    def label(self) -> str:
        return f"{self.path}/{self.key}"

    @property
    def filename(self) -> str:
        return f"{self.directory}/{self.key}"

    def write(self, handle: int, data: bytes) -> None:
        written = self.files.write(handle, data)
        if written < len(data):
            raise StorageFull(f"{self.label}: no space: {written} of {len(data)} bytes fit")

    def commit(self, handle: int, hidden: str) -> None:
        """Make what was written under ``hidden`` durable as this blob; raises `AlreadyExists`."""
        self.files.sync_data(handle)
        make_directories(self.files, self.directory)
        self._place(hidden)
        self.layout.sync_names(self.directory)

    def take(self, other: str, hidden: str) -> None:
        """Make another blob's file also this one's, by a copy where it must be.

        Nothing when this blob exists: the bytes of a key never change. The caller syncs the
        directory.
        """
        make_directories(self.files, self.directory)
        try:
            self.files.link(other, self.filename)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            self._copy(other, hidden)
            with contextlib.suppress(AlreadyExists):
                self._place(hidden)

    def _place(self, hidden: str) -> None:
        # A link, since a rename would replace a blob that another writer has just made.
        try:
            self.files.link(hidden, self.filename)
        except FileExistsError:
            raise AlreadyExists(f"{self.label}: is there already") from None
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            if self._exists():
                raise AlreadyExists(f"{self.label}: is there already") from None
            self.files.rename(hidden, self.filename)
        else:
            self.files.remove(hidden)

    def _exists(self) -> bool:
        return any(entry.name == self.key for entry in self.files.list_directory(self.directory))

    def _copy(self, other: str, hidden: str) -> None:
        source = self.files.open_read(other)
        try:
            copy = self.files.open_new(hidden)
            try:
                for piece in pieces(self.files, source, 0, self.files.state(source).size):
                    self.write(copy, piece)
                self.files.sync_data(copy)
            except BaseException:
                with contextlib.suppress(OSError):
                    self.files.remove(hidden)
                raise
            finally:
                self.files.close(copy)
        finally:
            self.files.close(source)
