"""Names of paths and streams as directories and files, and listing them. Blocking calls.

<root>/<path>/<stream>.jsonl
<root>/<path>/blobs/<key>
<root>/.log/, .blobs/    what is half made or half removed: swept when a writer opens the root
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from vaala_storage.errors import NotFound
from vaala_storage.file.system import Files
from vaala_storage.log import PathPage
from vaala_storage.names import check_name, check_path

BLOBS = "blobs"
"""The directory of a path's blobs; no path may have a part of this name."""


SUFFIX = ".jsonl"


def is_name(name: str) -> bool:
    try:
        check_name(name)
    except ValueError:
        return False
    return True


class Layout(Struct, frozen=True):
    files: Files
    root: str

    @classmethod
    def of(cls, files: Files, root: str | os.PathLike[str]) -> Layout:
        return cls(files, os.path.abspath(root))

    def directory(self, path: str) -> str:
        """Return a path's directory; raises ``ValueError`` for what is no path."""
        check_path(path)
        if BLOBS in path.split("/"):
            raise ValueError(f"{path!r}: {BLOBS!r} is the name of the directory for blobs")
        return f"{self.root}/{path}"

    def sync_names(self, directory: str) -> None:
        """Make the names that lead from the root to a directory durable, and those in it.

        Whoever finds a directory cannot know that its maker, perhaps in a process that was killed,
        came as far as its sync. On a device that holds it already this costs next to nothing.
        """
        while len(directory) >= len(self.root):
            self.files.sync_directory(directory)
            directory = os.path.dirname(directory)

    def holds_streams(self, directory: str) -> bool:
        try:
            entries = self.files.list_directory(directory)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return any(entry.name.endswith(SUFFIX) and not entry.is_directory for entry in entries)

    def streams(self, path: str) -> tuple[str, ...]:
        """Return the names of a path's streams, sorted; raises `NotFound`."""
        directory = self.directory(path)
        try:
            entries = self.files.list_directory(directory)
        except (FileNotFoundError, NotADirectoryError):
            entries = []
        names = (
            entry.name.removesuffix(SUFFIX)
            for entry in entries
            if entry.name.endswith(SUFFIX) and not entry.is_directory
        )
        found = tuple(sorted(name for name in names if is_name(name)))
        if not found:
            raise NotFound(f"{path}: no such path")
        return found

    def paths(self, cursor: str | None, limit: int) -> PathPage:
        """Return paths that hold streams, sorted, those after ``cursor``."""
        found: list[str] = []
        for path in self._walk("", cursor):
            if len(found) == limit:
                return PathPage(tuple(found), found[-1])
            found.append(path)
        return PathPage(tuple(found), None)

    def _walk(self, prefix: str, cursor: str | None) -> Iterator[str]:
        try:
            entries = self.files.list_directory(f"{self.root}/{prefix}".rstrip("/"))
        except (FileNotFoundError, NotADirectoryError):
            return
        names = [
            entry.name
            for entry in entries
            if entry.is_directory and entry.name != BLOBS and is_name(entry.name)
        ]
        # Other names sort between a path and the paths below it ("a", "a-b", "a/c"), so each name
        # stands here twice: for itself, and with a "/" for what is below.
        for key in sorted([prefix + name for name in names] + [f"{prefix}{n}/" for n in names]):
            if key.endswith("/"):
                if cursor is None or cursor < key or cursor.startswith(key):
                    yield from self._walk(key, cursor)
            elif (cursor is None or key > cursor) and self.holds_streams(f"{self.root}/{key}"):
                yield key
