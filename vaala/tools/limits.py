"""Every bound of the tools. Names carry the unit; texts are counted in bytes of UTF-8."""

from __future__ import annotations

ARGUMENTS_BYTES_MAX = 1 << 20
"""A line of the log holds 1 MiB, and the arguments stand in it."""
ARGUMENTS_DEPTH_MAX = 64
PROBLEMS_MAX = 12
"""Problems named in one error; a call that is wrong in more ways gets their number."""
SCHEMA_TEXT_CHARS_MAX = 600
VALUE_TEXT_CHARS_MAX = 60

RESULT_BYTES_MAX = 64 << 10
"""What any one result may put before the model; the built-in tools stay well below it."""
RESULT_BLOCKS_MAX = 64
"""Texts, and as many images and files; more texts than that become one."""
NOTE_BYTES = 1024
"""Room beside head and tail of a result for the line that says what is left out."""
TITLE_CHARS_MAX = 120
FAILURE_BYTES_MAX = 8 << 10

READ_LINES_MAX = 2000
READ_BYTES_MAX = 40 << 10
READ_LINE_CHARS_MAX = 2000
READ_SCAN_BYTES_MAX = 64 << 20
"""How far into a file that is too large to be held a line is looked for."""
READ_CHUNK_BYTES = 1 << 20
FILE_WHOLE_BYTES_MAX = 8 << 20
"""Files up to this size are read whole: hashed, edited, compared."""
BINARY_SAMPLE_BYTES = 8 << 10
HASH_INLINE_BYTES_MAX = 256 << 10
"""About half a millisecond of SHA-256; more is done in a thread."""

EDIT_INLINE_BYTES_MAX = 32 << 10
"""The work on a larger file is done in a thread."""
EDIT_PLACES_MAX = 100_000
EDIT_PLACES_NAMED_MAX = 10
NEAREST_LINES_MAX = 20_000
NEAREST_LINE_CHARS_MAX = 400
NEAREST_CANDIDATES_MAX = 20
NEAREST_SHOWN_LINES_MAX = 12

DIFF_BYTES_MAX = 24 << 10
DIFF_LINE_CHARS_MAX = 500
DIFF_COMPARED_LINES_MAX = 400
"""difflib is quadratic: a larger changed region is shown as removed and added."""

LIST_ENTRIES_MAX = 1000
LIST_BYTES_MAX = 32 << 10
SEARCH_MATCHES_MAX = 200
SEARCH_BYTES_MAX = 32 << 10
SEARCH_LINE_CHARS_MAX = 300

COMMAND_CHARS_MAX = 64 << 10
"""Linux refuses one argument of 128 KiB (MAX_ARG_STRLEN)."""
COMMAND_TIMEOUT_S_MAX = 24 * 3600.0
COMMAND_FIRST_OUTPUT_S = 1.0
"""How long a call that starts a background command waits for its first output."""
COMMAND_SETTLE_S = 0.3
"""A poll returns when there was output and then none for this long."""
COMMAND_OUTPUT_BYTES_MAX = 32 << 10
"""Output in one result: half of it from the head, half from the tail."""
COMMAND_WAIT_S_DEFAULT = 5.0
COMMAND_WAIT_S_MAX = 300.0
COMMAND_WRITE_S = 10.0
"""How long a command may take to read what is written to it."""
COMMAND_END_S = 10.0
"""How long a cancelled call waits for its command; ending the tree is bounded below that."""
COMMANDS_RUNNING_MAX = 16
COMMANDS_REMEMBERED_MAX = 32
COMMAND_SAVE_BUFFER_BYTES = 1 << 20
"""A write into a blob costs a hop to a thread."""
COMMAND_SAVE_S = 15.0
"""How long one write of output into its blob, or making it durable, may take."""
COMMAND_SAVED_BYTES_MAX = 256 << 20
"""What one command may write into its blob."""
COMMAND_WINDOW_BYTES_MAX = 256 << 10
"""The newest output that clients can page through, while a command has no blob."""
COMMAND_END_BYTES_MAX = 4 << 10
"""Output told with the end of a background command."""

LIVE_INTERVAL_S = 0.05
LIVE_BYTES_MAX = 16 << 10
"""Output shown live at once; what came on top of it within the interval is skipped."""

QUESTION_CHARS_MAX = 4000
QUESTION_CHOICES_MAX = 20
QUESTION_CHOICE_CHARS_MAX = 200

AGENT_WAIT_S_DEFAULT = 600.0
AGENT_WAIT_S_MAX = 3600.0
TASK_CHARS_MAX = 100_000
