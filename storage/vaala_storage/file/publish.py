"""Making and removing whole directories in one step: by a rename from or to a hidden one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from uuid import uuid4

from msgspec import Struct

from vaala_storage.errors import AlreadyExists, StorageFull
from vaala_storage.file.layout import BLOBS, SUFFIX, Layout
from vaala_storage.file.lines import make_lines
from vaala_storage.file.system import Files, make_directories, remove_tree
from vaala_storage.limits import BATCH_BYTES_MAX
from vaala_storage.log import Entry


class Publisher(Struct, frozen=True):
    """``hidden`` is a directory of the root that only this writer uses."""

    layout: Layout
    hidden: str

    @property
    def _files(self) -> Files:
        return self.layout.files

    def sweep(self) -> None:
        """Make the root and remove what a crash left half made or half removed."""
        make_directories(self._files, self.layout.root)
        remove_tree(self._files, self.hidden)

    def create(self, path: str, streams: Mapping[str, Sequence[Entry]]) -> None:
        """Make a path with its streams; durable on return; see `LogStorage.create`."""
        target = self.layout.directory(path)
        has_blobs = self._look_at(target, path)
        contents = {
            name: make_lines(entries, f"{path}/{name}") for name, entries in streams.items()
        }
        parent = os.path.dirname(target)
        make_directories(self._files, parent)
        new = self.place()
        try:
            self._files.make_directory(new)
            for name, content in contents.items():
                self._write(f"{new}/{name}{SUFFIX}", content, path)
            self._files.sync_directory(new)
            self._swap_in(new, target, has_blobs)
        except BaseException:
            with contextlib.suppress(OSError):
                remove_tree(self._files, new)
            raise
        self.layout.sync_names(parent)

    def delete(self, directory: str) -> None:
        """Remove a directory with everything in it; gone for good on return."""
        old = self.place()
        try:
            self._files.rename(directory, old)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._files.sync_directory(os.path.dirname(directory))
        remove_tree(self._files, old)

    def place(self) -> str:
        """Return a hidden name that nothing has yet, in a directory that exists."""
        make_directories(self._files, self.hidden)
        return f"{self.hidden}/{uuid4().hex}"

    def _look_at(self, target: str, path: str) -> bool:
        """Raise `AlreadyExists` unless nothing or only blobs are there; True: blobs are.

        A path that is said to exist is durable: its maker may have been told of a failed sync.
        """
        try:
            names = {entry.name for entry in self._files.list_directory(target)}
        except FileNotFoundError:
            return False
        if any(name.endswith(SUFFIX) for name in names):
            self.layout.sync_names(target)
            raise AlreadyExists(f"{path}: is there already")
        if names - {BLOBS}:
            raise AlreadyExists(f"{path}: its directory holds other things: {sorted(names)[:3]}")
        return BLOBS in names

    def _write(self, filename: str, content: bytes, path: str) -> None:
        handle = self._files.open_new(filename)
        try:
            for start in range(0, len(content), BATCH_BYTES_MAX):
                piece = content[start : start + BATCH_BYTES_MAX]
                if self._files.write(handle, piece) < len(piece):
                    raise StorageFull(f"{path}: no space for its streams")
            self._files.sync_data(handle)
        finally:
            self._files.close(handle)

    def _swap_in(self, new: str, target: str, has_blobs: bool) -> None:
        """Rename the new directory to its place; blobs stored before it move into it first."""
        if not has_blobs:
            self._files.rename(new, target)
            return
        self._files.rename(f"{target}/{BLOBS}", f"{new}/{BLOBS}")
        try:
            self._files.rename(new, target)
        except OSError:
            self._files.rename(f"{new}/{BLOBS}", f"{target}/{BLOBS}")
            raise
