"""Identifiers: UUIDv7 strings, so that sorting by id sorts by creation."""

from __future__ import annotations

import os
import re
import time

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def new_id() -> str:
    """Return a new UUIDv7 (RFC 9562, section 5.7).

    The 12 bits after the version hold the fraction of the millisecond (section 6.2, method 3),
    so ids made one after the other in one process nearly always sort in that order; nothing may
    depend on it, order within a session is told by ``at``.
    """
    millis, fraction = divmod(time.time_ns(), 1_000_000)
    head = (millis & 0xFFFF_FFFF_FFFF) << 16 | 0x7000 | (fraction << 12) // 1_000_000
    tail = 0x8000_0000_0000_0000 | int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{head:016x}{tail:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_id(text: str) -> bool:
    """Tell whether ``text`` has the form of our ids; safe as a file name when it does."""
    return _ID.fullmatch(text) is not None
