"""Every limit of the SQLite stores, with its unit in its name."""

from __future__ import annotations

BUSY_S_MAX = 5.0
"""How long a call waits for the lock of another process before it fails."""

READER_THREADS = 2
"""A long search must not hold up a page of a list."""

WRITES_PER_COMMIT_MAX = 64
"""Waiting writes that share one commit."""

CHECKED_AT_OPEN_BYTES_MAX = 8 << 20
"""A database up to this size is checked in full at open (about 10 ms); a larger one is probed."""

WAL_BYTES_KEPT = 32 << 20
"""The write-ahead log file is cut back to this after a checkpoint."""

CANDIDATES_MAX = 1000
"""Matching documents ranked against each other, from the newest: bounds the cost of a search
for a word that is everywhere (ranking 200,000 matches took 430 ms, 1,000 took 4)."""

SELECTIVITY_ROWS_MAX = 1000
"""How far rows are counted to find the rarest of several filters."""

BLOB_PART_BYTES = 256 << 10
"""A blob is stored in parts, so that a range is read without the rest."""

BLOB_KEYS_PAGE = 1000
"""Keys of a path that are read at a time."""

STEPS_BETWEEN_CHECKS = 10_000
"""Steps of SQLite's machine, a millisecond or less, after which a read looks for a cancel."""
