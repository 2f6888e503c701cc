"""Every limit of the runtime, with its unit in its name."""

from __future__ import annotations

INBOX_REQUESTS_MAX = 64
"""Requests that wait at one actor; one more is refused as overloaded."""
ASK_TIMEOUT_S = 30.0

SNAPSHOT_ITEMS_MAX = 50
SUBSCRIPTION_FRAMES_MAX = 4_096
"""Frames that wait for one slow subscriber; then it gets a new snapshot."""
SUBSCRIPTION_CHARACTERS_MAX = 8 * 1024 * 1024
"""Text in these frames, all together."""
CLIENT_QUEUE_CHARACTERS_MAX = 16 * 1024 * 1024
"""Text in the frames that wait in all subscriptions of one client."""
FRAME_CHARACTERS = 200
"""What a frame counts in these bounds beside its text."""
MERGED_DELTA_CHARACTERS_MAX = 16 * 1024
"""Deltas that wait are merged up to this length: each merge copies what was merged before."""
RING_FRAMES_MAX = 1_024
"""The newest frames, from which a reader that returns goes on; about 0.5 MB at most."""
RING_CHARACTERS_MAX = 256 * 1024
RING_KEPT_S = 60.0
"""How long they are kept when nobody watches."""

ROWS_MAX = 200
"""Conversations in the snapshot of the runtime; lists have the rest."""
ROWS_PERIOD_S = 0.25
"""The row of a conversation is told at most once in this time."""
ROWS_RETRY_MAX_S = 15.0
"""Rows that could not be read are looked at again after the period, then twice that, up to this."""
CREATED_REMEMBERED_MAX = 1_000
"""Client ids of made conversations, so that a retry finds what was made."""
COMMAND_OUTPUT_BYTES_MAX = 1024 * 1024
"""One answer with output of a command."""
TERMINAL_SIDE_MAX = 10_000
"""Columns and rows of a terminal."""
NAMED_FILE_THREADS_MAX = 8
"""Threads for archives in files that clients name: those that hang hold up nothing else."""
EXPORT_CHUNK_BYTES = 1024 * 1024
"""Written or read in one hop to a thread."""

QUEUE_INPUTS_MAX = 256
INPUT_BYTES_MAX = 448 * 1024
"""One input as JSON. A message that starts a turn at once is written twice in one append, as an
input and as an item, and a line of the log holds 1 MiB."""
INPUTS_TAKEN_BYTES_MAX = 480 * 1024
"""Inputs that become items in one append, as JSON; what does not fit comes with the next step."""
CLIENT_ID_BYTES_MAX = 256
"""A session remembers a thousand of them, in memory and in each checkpoint."""
SETTINGS_BYTES_MAX = 16 * 1024
OUTPUT_SCHEMA_BYTES_MAX = 64 * 1024
"""The JSON Schema of an answer; each request of its turn carries it."""
OUTPUT_RETRIES_MAX = 2
"""How often a model is told in one turn that its answer does not match the schema."""
OUTPUT_PROBLEMS_MAX = 8
"""What is told of it at once."""
TITLE_BYTES_MAX = 4 * 1024
TITLE_CHARS_MAX = 80
"""Of a title that a model makes."""
TITLE_SOURCE_BYTES_MAX = 8 * 1024
"""What it is shown of the first message, head and tail."""
TITLE_ANSWER_BYTES_MAX = 4 * 1024
TITLE_TOKENS_MAX = 1_024
"""Its reasoning included."""
TITLE_S_MAX = 30.0
TAGS_BYTES_MAX = 8 * 1024
PATH_BYTES_MAX = 4_095
NAME_BYTES_MAX = 255
"""Of a path, and of one name in it: PATH_MAX and NAME_MAX of Linux."""
LOCATION_BYTES_MAX = 8 * 1024
"""A path has up to 4 KiB, and half as much again when it is written as JSON."""
REASON_BYTES_MAX = 16 * 1024
"""What a person says to an approval, with who it is."""
RESULT_BYTES_MAX = 64 * 1024
"""Text of one tool result as it is kept in its item; tools cut theirs well below."""
ARGUMENTS_BYTES_MAX = 256 * 1024
ANSWER_BYTES_MAX = 512 * 1024
"""Text of one answer of a model, and its reasoning, each as JSON; more is cut and says so."""
CALLS_PER_STEP_MAX = 64
CHILDREN_MAX = 32
"""Open child sessions of one session."""
DEPTH_MAX = 4
"""Sessions above one another, the root included."""

HISTORY_KEPT_S = 60.0
"""How long an idle session keeps its working history."""
CONVERSATION_KEPT_S = 600.0
"""How long an unused conversation stays open."""
EMPTY_CONVERSATION_KEPT_S = 24 * 3600.0
"""The same for one that nobody has said anything in: it is nowhere else, and gone with that."""
EMPTY_CONVERSATIONS_MAX = 2_048
"""Open ones of them; with one more, the longest unused one that nobody watches is gone."""
OPEN_CONVERSATIONS_MAX = 12_288
"""Conversations that are open; with one more, the longest unused ones that nothing needs close.
An idle one costs up to 50 KB."""
REQUEST_ON_ITS_WAY_S = 1.0
"""One that was asked for something within this time is not closed to make room."""
JANITOR_PERIOD_S = 15.0
TICKS_AT_ONCE = 200
"""Conversations that the janitor looks at before others have their turn; each costs some 10 us."""

SAVE_RETRY_FIRST_S = 0.25
SAVE_RETRY_MAX_S = 15.0
SHUTDOWN_S = 10.0
"""One deadline for the ordered end of the whole tree."""
LAST_WORDS_S = 1.0
"""What an actor has beyond it to write down what children sent that were cancelled by it."""

IDENTICAL_FAILURES_MAX = 4
"""The same call with the same error this many times in a row ends the turn."""
SIMILAR_FAILURES_MAX = 8
"""The same tool with the same error, whatever its arguments."""
HISTORY_PAGE_ITEMS = 500
USAGE_TURNS_MAX = 100
"""The newest turns whose usage is told one by one."""
