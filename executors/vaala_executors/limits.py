"""Every bound of this package, with its unit in its name."""

from __future__ import annotations

CHUNK_BYTES_MAX = 65_536
"""One piece of output: the capacity of a Linux pipe, so one read empties it."""
DRAIN_SECONDS = 0.25
"""How long output is read after the process has exited, when something still holds the pipe."""
START_REQUEST_BYTES_MAX = 8 * 1024 * 1024
"""Arguments and environment of one command; Linux refuses far less at exec (a quarter of the
stack limit, 2 MiB by default)."""
END_SECONDS = 6.0
"""Until `Process.end` acts by itself: the supervisor needs at most 3 s, for grace and KILL, and a
loaded machine may be late."""
SUPERVISOR_STOP_SECONDS = 8.0
"""Grace, last resort and a margin for a loaded machine."""
PTY_COLUMNS = 80
PTY_ROWS = 24

FILE_THREADS_MAX = 16
"""Threads for file work. Trio's default limiter is shared with everything else in the program,
and 40 slow reads would stall it."""
IO_BYTES = 1024 * 1024
"""One read or write of a file; between two of them a cancel is noticed."""
READ_BYTES_MAX = 64 * 1024 * 1024
LIST_ENTRIES_MAX = 100_000

SEARCH_SECONDS = 10
SEARCH_FILES_MAX = 200_000
SEARCH_BYTES_MAX = 1024 * 1024 * 1024
SEARCH_FILE_BYTES_MAX = 64 * 1024 * 1024
SEARCH_MATCHES_MAX = 10_000
SEARCH_RESULT_BYTES_MAX = 16 * 1024 * 1024
SEARCH_MEMORY_BYTES_MAX = 2 * 1024 * 1024 * 1024
"""Address space of the searching process, against patterns that eat memory."""

CAPTURE_HEAD_BYTES = 128 * 1024
CAPTURE_TAIL_BYTES = 128 * 1024
CAPTURE_SINK_BYTES_MAX = 256 * 1024 * 1024
"""What one command may write into its blob."""
