"""Every limit of a client's connection, with its unit in its name.

Together they bound what one client can make the server hold: its requests, the answers that it
does not read, and what it watches.
"""

from __future__ import annotations

IN_FLIGHT_REQUESTS_MAX = 64
"""Requests of one client that are worked on; its next one is read when one of them is answered."""
OUTBOX_BYTES_MAX = 4 * 1024 * 1024
"""Answers that a client has not read yet; beyond that nothing more is read from it."""
WATCHED_CONVERSATIONS_MAX = 256
"""Conversations that one client watches at the same time."""
WATCHED_BYTES_MAX = 2 * 1024 * 1024
"""Text of events that wait for one client, for each conversation that it watches; then it gets a
snapshot in their place."""
NOTICES_MAX = 16
"""Lines for the person that wait for a client; the oldest is dropped for one more."""

CLIENT_REQUESTS_MAX = 64
"""What the server asks of one client at the same time."""
CLIENT_ANSWER_S = 60.0
"""How long a client may take for what it has offered, when it does not wait for a person."""
OFFERED_TOOLS_MAX = 128
"""Tools in one offer."""
OFFERED_TOOLS_BYTES_MAX = 256 * 1024
"""Names, descriptions and schemas in one offer, as JSON: every request to a model carries them."""

ENVIRONMENT_BYTES_MAX = 128 * 1024
"""What a client says about its environment; one variable of Linux alone may have 128 KiB."""
CLIENT_NAME_CHARACTERS_MAX = 200

REOPEN_FIRST_S = 0.1
REOPEN_MAX_S = 5.0
REOPEN_TIMES_MAX = 8
"""How often a watched conversation that crashes on opening is opened again before it is given up:
about half a minute."""

CLOSE_S = 1.0
"""How long a client has to hear that the connection ends, before it is cut."""
EXPORT_CHUNK_BYTES = 256 * 1024
"""Of an archive that is written to a file."""
"""Items of one page; as many as `vaala.dao` gives at once."""
PAGE_ITEMS_MAX = 200
LIST_ROWS_MAX = 200
"""Conversations of one page."""
COMMAND_OUTPUT_BYTES_MAX = 1024 * 1024
"""Output of a command in one answer."""
