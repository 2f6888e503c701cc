"""Every limit of storage, with its unit in its name."""

from __future__ import annotations

NAME_CHARS_MAX = 200
"""A part of a path, a stream id or a blob key: files may have 255 bytes, and a suffix follows."""

PATH_CHARS_MAX = 1000
"""A whole path; the system's own limit is 4096 bytes with the root before it (1024 on macOS)."""

BATCH_BYTES_MAX = 1 << 20
"""One line of a log file; a larger value goes into a blob."""

PAGE_BYTES_MAX = 16 << 20
"""A page of a read ends with the batch that reaches this, however many entries were asked for."""

READ_BLOCK_BYTES_MIN = 8 << 10
READ_BLOCK_BYTES_MAX = 256 << 10
"""A scan reads small blocks first, since most stop soon, and doubles them."""

BISECT_BYTES_MIN = 128 << 10
"""A search by bisection ends in a range of this size, which is then read through."""

BLOB_PIECE_BYTES_MAX = 4 << 20
"""What one call writes or copies of a blob, so that a slow disk is told from a silent one."""

SYNC_SILENCE_S_MAX = 10.0
"""A sync that has said nothing for this long is taken for failed."""

CALL_SILENCE_S_MAX = 60.0
"""The same for calls of another kind: removing a big directory takes its time."""

SYNC_THREADS_MAX = 8
"""Measured on ext4: 2 are half as fast, 16 no faster (the file system shares its commits)."""

CALL_THREADS_MAX = 8
"""Reads and work on directories; apart from the syncs, so that neither waits for the other."""

REPORT_JOBS_MAX = 8
REPORT_LINGER_S = 0.001
"""So many finished appends are told together, or those of so long. Measured with 8 streams on a
fast disk and a busy machine: half the CPU an append, and twice as many a second."""

LOST_THREADS_MAX = 32
"""Threads stuck in a call that nobody waits for any more, beyond which they are not replaced."""

OPEN_FILES_MAX = 256

STREAMS_KNOWN_MAX = 16_384
"""Streams whose position is remembered, about 1 KB each; the others are read from their end."""

TORN_FILES_MAX = 16
"""Torn ends kept beside one stream; the oldest goes first."""

READS_AGAIN_MAX = 3
"""How often an append looks anew at a file that someone else keeps changing."""
