"""Pages of lists: how long one may be, and the cursor that a caller hands back for the next.

A cursor is opaque text. It holds a position, no state.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

import msgspec

T = TypeVar("T")


def check_limit(limit: int) -> None:
    """Raise ``ValueError`` for a page that could hold nothing."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, it is {limit}")


def write_cursor(position: object) -> str:
    """Return a position, a tuple of plain values, as opaque text."""
    return urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def read_cursor(cursor: str, kind: type[T]) -> T:
    """Return the position as a ``kind``; raises ``ValueError`` for what is no such cursor."""
    try:
        data = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        return msgspec.json.decode(data, type=kind)
    except (binascii.Error, UnicodeError, msgspec.DecodeError) as error:
        raise ValueError(f"not a cursor of this list: {cursor[:80]!r}") from error
