"""Every limit of the stores in memory, with its unit in its name."""

from __future__ import annotations

STAGED_BYTES_MAX = 256 << 20
"""What one in-memory store holds by default, all kinds together."""

VALUE_BYTES = 200
"""What an entry, a record or a document costs beside its text (keys, objects, table slots)."""

CHARS_PER_TURN = 1 << 20
"""A search lets other tasks run after so much text (a few milliseconds)."""
