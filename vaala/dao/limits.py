"""Every limit of persistence, with its unit in its name."""

from __future__ import annotations

CHECKPOINT_AFTER_BYTES_MIN = 64 << 10
CHECKPOINT_AFTER_SIZES = 4
"""A checkpoint is due after this many times the size of the last one: then checkpoints are at
most a fifth of a stream, and opening reads at most about this much."""

READ_CHUNK_ENTRIES = 128
PROBE_ENTRIES = 16
"""How many entries one probe of a bisection reads."""
METADATA_TAIL_ENTRIES = 8
PAGE_ITEMS_MAX = 1_000
LIST_PAGE_MAX = 1_000

NAME_CHARS_MAX = 100
"""A conversation id is a directory name; file systems take 255 bytes."""
TITLE_CHARS_MAX = 80
"""Of a title made from the first message."""
SNIPPET_CHARS_MAX = 160
SEARCH_TEXT_CHARS_MAX = 16_000
"""How much of one message can be found."""

INDEX_DELAY_S = 0.5
"""How long index writes are gathered when nobody asks for the list."""
INDEX_RETRY_S_MAX = 60.0
INDEX_PENDING_BYTES_MAX = 8 << 20
"""Above this, gathered entries are let go and read from the log when their turn comes."""
INDEX_BATCH_CONVERSATIONS = 100
INDEX_BATCH_DOCUMENTS = 300
"""One write of so many documents takes about a tenth of a second."""
INDEX_READS_AT_ONCE = 8
RECONCILE_DELAY_S = 2.0
"""The comparison of directories with rows waits so long, so that a short run does not pay."""
SETTLING_S_MAX = 2.0
"""A list waits so long for what an earlier run left to be settled; it takes milliseconds."""
FINAL_FLUSH_S_MAX = 5.0
PATHS_PAGE_MAX = 20_000
"""Each page of paths lists the whole directory once, so the pages are large."""
MEMORY_STORE_BYTES_MAX = 1 << 30

COPY_BATCH_BYTES = 64 << 10
"""Entries of a copy go to the log in batches of about this size: a page of a transcript decodes
every line that it touches, and each batch is a sync."""
OPENING_KEPT_ENTRIES = 1_024
"""Kept while the newest checkpoint is looked for; beyond so many they are read again."""
ARCHIVE_PART_BYTES = 1 << 20
"""Entries of a stream are packed in files of about this size."""
ARCHIVE_CHUNK_BYTES = 64 << 10
"""Compressed in one go: about a millisecond of work."""
ARCHIVE_PART_BYTES_MAX = 4 << 20
ARCHIVE_MANIFEST_BYTES_MAX = 4 << 20
ARCHIVE_BYTES_MAX = 64 << 30
"""Unpacked; the disk is full before that on most machines, and then nothing is left of it."""
ARCHIVE_MEMBERS_MAX = 1_000_000
ARCHIVE_STREAMS_MAX = 10_000
