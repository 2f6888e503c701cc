"""Every limit of storage, with its unit in its name."""

from __future__ import annotations

BATCH_BYTES_MAX = 1 << 20
"""One line of a log file; a larger value goes into a blob."""

SYNC_SILENCE_S_MAX = 10.0
"""A sync that has said nothing for this long is taken for failed."""

SYNC_THREADS_MAX = 16
OPEN_FILES_MAX = 256
