"""The limits of finding a server, with their units in their names."""

from __future__ import annotations

RECORD_BYTES_MAX = 64 * 1024
"""A record has a few hundred bytes, plus the paths in it."""
LOCK_BYTES_MAX = 64 * 1024
"""What the owner of a data directory says about itself, with its command line."""
READY_LINE_BYTES_MAX = 64 * 1024
FAILURE_CHARACTERS_MAX = 2_000
"""Of a message in that line: an empty pipe takes at least 16 KiB at once, so nobody waits."""
TOKEN_BYTES = 32
"""Of the system's randomness: as many as the key of HMAC-SHA256 can use."""
CHALLENGE_BYTES = 32
CHALLENGE_CHARACTERS_MAX = 256
"""A longer challenge is not answered."""
