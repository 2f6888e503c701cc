"""The limits of a client, with their units in their names."""

from __future__ import annotations

CONNECT_S = 1.0
"""To reach an address; on this machine it is a millisecond or never."""
HANDSHAKE_S = 3.0
"""For the answer of the upgrade. A stranger that listens and says nothing costs this much."""
PATIENT_HANDSHAKE_S = 15.0
"""The same when it is known that a server runs: this machine may be very busy."""
READY_S = 30.0
"""For a server to become ready after its start: it recovers what a crash has left."""
OWNED_S = 25.0
"""How long one who owns the data directory is waited for: a server that ends gives its turns and
commands 11 s, then its telemetry 10 s, and has taken its record away before all that."""
OWNED_QUIET_S = 2.0
"""Of that, how long nothing is said about it: a server at rest takes less to begin or end."""
OWNED_POLL_S = 0.05
START_LOCK_S = OWNED_S + READY_S + 15.0
"""How long a client waits for another one that starts the server."""
START_LOCK_POLL_S = 0.02
OUTPUT_BYTES_MAX = 1024 * 1024
"""What servers have printed; then it begins anew, with the part before it kept once."""
LAST_WORDS_BYTES_MAX = 2_000
"""Of that, in the message about a server that died before it was ready."""

REQUEST_S = 60.0
"""From the call to the answer, a new connection and a new server included."""
GREET_S = 15.0
TRANSFER_S = 600.0
"""For an archive, which may hold gigabytes."""
REQUESTS_MAX = 64
"""Requests that wait for an answer; further ones wait for their turn."""
SERVED_MAX = 64
"""Requests of the server that handlers of an offer work on."""
TERMINALS_MAX = 256
"""Terminals that the server has started and not ended, of all offers together."""
TERMINAL_END_S = 5.0
"""For terminals that nobody wants any more to end."""
OUTGOING_MESSAGES_MAX = REQUESTS_MAX + SERVED_MAX + 64
"""Messages that wait to be sent; one more, and the server counts as gone."""
RECEIVE_BYTES = 64 * 1024
HEAD_BYTES_MAX = 16 * 1024
"""The head of the answer to an upgrade, or what is read of the body of a refusal."""

PING_PERIOD_S = 20.0
PING_S = 20.0
"""A server that does not answer a ping in this time has gone, whatever the socket says."""
CLOSE_S = 1.0

RECONNECT_FIRST_S = 0.05
RECONNECT_MAX_S = 2.0
RECONNECT_S = 30.0
"""How long a lost server is looked for, all attempts together, before it is given up."""
STOPPED_S = 15.0
"""The same for one that was stopped on purpose: then only another one's start helps."""

SUBSCRIBE_TIMES_MAX = 10
"""Attempts in a row to watch what a server is just closing or too busy for."""
SUBSCRIBE_PAUSE_S = 0.1
SUBSCRIPTION_UPDATES_MAX = 4_096
"""Updates that wait for one slow reader; then a new snapshot is asked for in their place."""
SUBSCRIPTION_CHARACTERS_MAX = 8 * 1024 * 1024
"""Text in these updates, all together."""
PAGE_ITEMS = 100
"""As many as the server gives at once."""
