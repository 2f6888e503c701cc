"""What git would ignore: .gitignore of every directory, .git/info/exclude.

The deepest file with an opinion decides, in it the last pattern, as gitignore(5) says. Files
count outside of a repository too: an unpacked archive has its .gitignore for the same reason.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_BYTES_MAX = 1024 * 1024
PARENTS_MAX = 64


class Ignore:
    """The patterns that hold in one directory, and those of the directories above it."""

    __slots__ = ("_base", "_spec", "_upper")

    def __init__(self, base: str, spec: GitIgnoreSpec, upper: Ignore | None) -> None:
        self._base = base
        self._spec = spec
        self._upper = upper

    def ignores(self, path: str, *, is_directory: bool) -> bool:
        """Whether a path below the directory is ignored by itself (not through a parent)."""
        suffix = "/" if is_directory else ""
        level: Ignore | None = self
        while level is not None:
            opinion = level._spec.check_file(path[len(level._base) :] + suffix).include
            if opinion is not None:
                return opinion
            level = level._upper
        return False


def enter(directory: str, upper: Ignore | None) -> Ignore | None:
    """Return what holds in ``directory`` (its path ends with a slash)."""
    for name in (".git/info/exclude", ".gitignore"):
        lines = _lines(directory + name)
        if lines:
            from pathspec import GitIgnoreSpec

            upper = Ignore(directory, GitIgnoreSpec.from_lines(lines), upper)
    return upper


def above(root: str) -> Ignore | None:
    """Return what the repository around ``root`` says about what lies in it.

    Nothing if ``root`` itself is ignored there: whoever names it wants it searched.
    """
    parents: list[str] = []
    directory = root
    while not os.path.exists(os.path.join(directory, ".git")):
        directory = os.path.dirname(directory)
        parents.append(directory)
        if directory == os.path.dirname(directory) or len(parents) > PARENTS_MAX:
            return None
    ignore: Ignore | None = None
    for parent in reversed(parents):
        ignore = enter(parent.rstrip("/") + "/", ignore)
        child = root[len(parent.rstrip("/")) + 1 :].split("/")[0]
        path = parent.rstrip("/") + "/" + child
        if ignore is not None and ignore.ignores(path, is_directory=os.path.isdir(path)):
            return None
    return ignore


def _lines(path: str) -> list[str]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    with open(descriptor, "rb") as file:
        try:
            text = file.read(IGNORE_BYTES_MAX) or b""
        except OSError:
            return []
    return text.decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n")
