"""What the searching process is asked for and what it answers, as lines of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

CONTEXT_BEFORE_CHARACTERS = 100
LINE_CHARACTERS_MAX = 400
"""Of a line that matches; it is cut around the match."""


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: int
    files: int
    bytes: int
    file_bytes: int
    matches: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Query:
    """``root`` is a real path."""

    root: str
    pattern: str | None
    glob: str | None
    ignore_case: bool
    literal: bool
    limits: Limits

    def encode(self) -> str:
        return json.dumps(asdict(self))


def decode(text: str) -> Query:
    fields: dict[str, Any] = json.loads(text)
    limits = Limits(**fields.pop("limits"))
    return Query(**fields, limits=limits)


# The kinds of an answer, its first element.
MATCH = "m"  # path, line or null, text
NOTE = "n"  # text
BAD_PATTERN = "b"  # text
TRUNCATED = "t"  # matches are left out
DONE = "d"
