"""Matching the lines of one file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from .query import CONTEXT_BEFORE_CHARACTERS, LINE_CHARACTERS_MAX

SAMPLE_BYTES = 8192
PIECE_BYTES_MAX = 1024 * 1024
"""A longer line is searched in pieces of this size."""
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def open_file(path: str) -> BinaryIO:
    """Open without ever waiting, should the file have become a FIFO. Raises OSError."""
    return open(os.open(path, OPEN_FLAGS), "rb")


def is_binary(file: BinaryIO) -> bool:
    """Whether a NUL is in the first 8 KiB: the rule of git and grep, and blind to encodings."""
    sample = file.read(SAMPLE_BYTES) or b""
    file.seek(0)
    return b"\0" in sample


def matching_lines(
    file: BinaryIO, regex: re.Pattern[str], bytes_max: int
) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that match, in the first ``bytes_max`` bytes.

    Lines end at a newline byte and nothing else; text is UTF-8 with replacement.
    """
    number = 1
    told = 0
    while bytes_max > 0 and (piece := file.readline(min(PIECE_BYTES_MAX, bytes_max))):
        bytes_max -= len(piece)
        line = piece.decode("utf-8", "replace").rstrip("\r\n")
        found = regex.search(line)
        if found is not None and told != number:
            told = number
            yield number, excerpt(line, found.start())
        number += piece.endswith(b"\n")


def excerpt(line: str, at: int) -> str:
    """Return the line, or its part around ``at`` when it is long."""
    if len(line) <= LINE_CHARACTERS_MAX:
        return line
    begin = max(0, min(at - CONTEXT_BEFORE_CHARACTERS, len(line) - LINE_CHARACTERS_MAX))
    end = begin + LINE_CHARACTERS_MAX
    return ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")
