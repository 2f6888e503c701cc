"""Choosing files by name."""

from __future__ import annotations

from collections.abc import Callable

ALTERNATIVES_MAX = 256


def matcher(glob: str) -> Callable[[str], bool]:
    """Return a test for paths relative to the search's root.

    A glob without a slash matches names at any depth, one with a slash from the root; ``**`` is
    any number of directories, ``{a,b}`` alternatives, a leading ``!`` means all others. Raises
    ValueError.
    """
    from pathspec import GitIgnoreSpec

    negated = glob.startswith("!")
    spec = GitIgnoreSpec.from_lines(_expand(glob.removeprefix("!")))
    return lambda path: spec.match_file(path) is not negated


def _expand(glob: str) -> list[str]:
    """Return ``a.{b,c}`` as ``a.b`` and ``a.c``; an unpaired brace stands for itself."""
    done: list[str] = []
    todo = [glob]
    while todo:
        if len(todo) + len(done) > ALTERNATIVES_MAX:
            raise ValueError(f"more than {ALTERNATIVES_MAX} alternatives")
        pattern = todo.pop()
        closing = pattern.find("}")
        opening = pattern.rfind("{", 0, closing) if closing >= 0 else -1
        if opening < 0:
            done.append(pattern)
            continue
        head, tail = pattern[:opening], pattern[closing + 1 :]
        todo.extend(head + one + tail for one in pattern[opening + 1 : closing].split(","))
    return done
