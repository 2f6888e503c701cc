"""Every bound of this package, with its unit in its name."""

from __future__ import annotations

from vaala_protocol.limits import MESSAGE_BYTES_MAX

FILE_READ_S = 30.0
FILE_WRITE_S = 30.0
TOOL_S = 600.0
TERMINAL_START_S = 30.0
TERMINAL_END_S = 6.0
"""As long as `vaala_executors.limits.END_SECONDS` for a command of our own."""
TERMINAL_REST_S = 1.0
"""How long the rest of the output may take after the terminal was ended, all answers together."""
TERMINAL_EMPTY_PAUSE_S = 0.2
"""Between two requests for output when the client answers at once that there is none."""
TERMINAL_WAITING_BYTES_MAX = 1024 * 1024
"""Output that waits for its reader; then the client is asked for no more."""

TEXT_BYTES_MAX = (MESSAGE_BYTES_MAX - 64 * 1024) // 6
"""A text of a file, UTF-8: in JSON a byte can become six, and one message has to hold it. A larger
one is the disk's."""

OFFERS_MAX = 32
"""Live offers for one conversation."""
TOOLS_PER_OFFER_MAX = 128
SCHEMA_DEPTH_MAX = 32
SCHEMA_BYTES_MAX = 64 * 1024
"""The schema of one tool as JSON; every request to a model carries it."""
OFFER_SCHEMA_BYTES_MAX = 256 * 1024
"""All schemas of one offer. To look through this much takes less than 0.1 s."""
DESCRIPTION_BYTES_MAX = 16 * 1024
ARGUMENT_VISITS_MAX = 4_000
"""Looks at a value of a tool's arguments: alternatives within alternatives multiply. What is beyond
this, about 0.1 s of work, is left to the client whose tool it is."""
ANSWER_VISITS_MAX = 300_000
"""The same for an answer, which is checked whole or not taken: some ten seconds in a thread."""
PROBLEMS_MAX = 12
"""Problems of arguments named in one error."""
SUBJECT_BYTES_MAX = 2 * 1024
"""Arguments of a call that a permission rule may name; longer ones have no rule of their own."""

CLIENT_NAME_CHARS_MAX = 60
ERROR_CHARS_MAX = 500
"""What a client says went wrong, in a text of ours."""
VALUE_CHARS_MAX = 60
