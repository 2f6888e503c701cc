"""What the searching process is asked for and what it answers, as lines of JSON."""

from __future__ import annotations

import json
from typing import NamedTuple

CONTEXT_BEFORE_CHARACTERS = 100
LINE_CHARACTERS_MAX = 400
"""Of a line that matches; it is cut around the match."""


class Limits(NamedTuple):
    """Tuples and not dataclasses, whose module costs this process 8 ms of import."""

    seconds: int
    files: int
    bytes: int
    file_bytes: int
    matches: int
    memory_bytes: int


class Query(NamedTuple):
    """``root`` is a real path."""

    root: str
    pattern: str | None
    glob: str | None
    ignore_case: bool
    literal: bool
    limits: Limits

    def encode(self) -> str:
        return json.dumps(self)


def decode(text: str) -> Query:
    query = Query(*json.loads(text))
    return query._replace(limits=Limits(*query.limits))


# The kinds of an answer, its first element.
MATCH = "m"  # path, line or null, text
NOTE = "n"  # text
BAD_PATTERN = "b"  # text
TRUNCATED = "t"  # matches are left out
DONE = "d"
