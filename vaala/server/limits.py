"""Every limit of a client's connection, with its unit in its name.

Together they bound what one client can make the server hold: its requests, the answers that it
does not read, and what it watches.
"""

from __future__ import annotations

HELLO_S = 30.0
"""How long a client may take to say who it is; then its connection ends."""
NOTES_IN_WORK_MAX = 128
"""Requests that want no answer; as many as of those that do (`vaala_protocol.limits`)."""
BULKY_ANSWERS_MAX = 4
"""Pages, lists and snapshots that are made for one client at the same time."""
OUTBOX_BYTES_MAX = 4 * 1024 * 1024
"""Answers that a client has not read yet; beyond that nothing more is read from it."""
EVENTS_BYTES = 32 * 1024
"""Events to one client are written together until they have so many bytes."""
EVENTS_PERIOD_S = 0.01
"""Between two bursts of events to one client: nobody sees less, and what comes in smaller steps is
merged. A screen shows a picture each 16 ms."""
WATCHED_CONVERSATIONS_MAX = 256
"""Conversations that one client watches at the same time; what waits for it in all of them is
bounded by `vaala.limits.CLIENT_QUEUE_CHARACTERS_MAX`."""
OFFERS_PER_CLIENT_MAX = 256
"""Conversations that one client serves at the same time."""
NOTICES_MAX = 16
"""Lines for the person that wait for a client; the oldest is dropped for one more."""

ENVIRONMENT_BYTES_MAX = 128 * 1024
"""What a client says about its environment; one variable of Linux alone may have 128 KiB."""
CLIENT_NAME_CHARACTERS_MAX = 200
"""It stands in logs, in approvals and in what others see of them; its version, too."""

REOPEN_FIRST_S = 0.1
REOPEN_MAX_S = 5.0
REOPEN_TIMES_MAX = 8
"""How often a watched conversation that crashes on opening is opened again before it is given up:
about half a minute."""

CONNECTIONS_END_S = 5.0
"""How long connections have to end when the server does; then turns are ended and written down
without them, and the process with what hangs in it."""
END_S = 25.0
"""How long the whole ordered end may take: connections, turns and what they write
(`vaala.limits.SHUTDOWN_S`), the last of the index and of telemetry. Then the process ends."""
PLACE_PERIOD_S = 2.0
"""How often a server looks whether its data is still where it was."""
MEMORY_PERIOD_S = 10.0
"""How often a server looks how large it has become."""
GROWN_BYTES = 32 * 1024 * 1024
"""It looks for memory to give back, which holds up all for about 0.1 s, after it has grown by so
much."""
CLOSE_S = 1.0
"""How long a client has to hear that the connection ends, before it is cut."""
PAGE_ITEMS_MAX = 100
"""Items of one page of a transcript."""
PAGE_CHARACTERS_MAX = 4 * 1024 * 1024
SNAPSHOT_CHARACTERS_MAX = 4 * 1024 * 1024
"""Text of the items in one page, or in one snapshot: to make one takes 10 to 40 ms then, and it is
one message (`vaala_protocol.limits.ANSWER_BYTES_MAX`) whatever JSON makes of the characters."""
STATUS_CONVERSATIONS_MAX = 200
"""Open conversations that are told by `runtime/status`, with their number."""
LIST_ROWS_MAX = 200
"""Conversations of one page."""
USAGE_ROWS_MAX = 50
"""Conversations of one page of usage: the turns of each have to be read."""
