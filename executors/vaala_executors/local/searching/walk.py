"""The files below a directory, in a fixed order, each once."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .ignore import Ignore, above, enter

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})


def walk(root: str, unreadable: list[str]) -> Iterator[str]:
    """Yield regular files. Links are not followed, so there is no loop and no way out.

    A ``root`` that is a file is yielded whatever is ignored. Directories that cannot be listed
    are added to ``unreadable``.
    """
    if not os.path.isdir(root):
        yield root
        return
    todo: list[tuple[str, Ignore | None]] = [(root.rstrip("/") + "/", above(root))]
    while todo:
        directory, upper = todo.pop()
        ignore = enter(directory, upper)
        below: list[tuple[str, Ignore | None]] = []
        for entry in _entries(directory, unreadable):
            path = directory + entry.name
            is_directory = entry.is_dir(follow_symlinks=False)
            if is_directory and entry.name in VERSION_CONTROL:
                continue
            if ignore is not None and ignore.ignores(path, is_directory=is_directory):
                continue
            if is_directory:
                below.append((path + "/", ignore))
            elif entry.is_file(follow_symlinks=False):
                yield path
        todo.extend(reversed(below))


def _entries(directory: str, unreadable: list[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        unreadable.append(directory)
        return []
