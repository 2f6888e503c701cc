"""The limits of the front door, with their units in their names."""

from __future__ import annotations

from vaala_protocol.limits import MESSAGE_BYTES_MAX

BACKLOG = 512
"""Connections that the kernel keeps for us: a storm of 500 a second fits while we are busy."""
ACCEPT_RETRY_S = 0.1
"""The pause after an accept that failed for want of descriptors or memory."""
CONNECTIONS_MAX = 4096
DESCRIPTORS_KEPT = 64
"""Descriptors that connections leave to logs, storage and commands."""
TURNED_AWAY_MAX = 16
"""Connections beyond that which are told so at the same time; more are just closed."""
STRANGERS_MAX = 1024
"""Connections that have not shown a token yet, and half of all there may be at most; one more, and
the oldest of them is closed. A thousand clients that come at once are let in all the same."""

HEAD_BYTES_MAX = 16 * 1024
"""Request line and headers; browsers and proxies keep to 8 KiB."""
HEAD_S = 10.0
"""For the whole head, however slowly it drips."""
HANDSHAKE_S = 10.0
"""For our answer to an upgrade to leave."""
LINGER_S = 1.0
LINGER_BYTES_MAX = 32 * 1024 * 1024
"""What is still read, and thrown away, from a client that was told to stop: closing with bytes
unread resets the connection, and the client might never see why."""

RECEIVE_BYTES = 64 * 1024
FRAMES_BYTES = 4 * 1024
"""What trio-websocket gets to see at once. It takes that apart without letting anyone else run, and
for frames that hold nothing it takes 10 us each: 110 ms for 64 KiB of them, 7 ms for this."""
UNSENT_BYTES = 16 * 1024
"""What the kernel takes beyond what is on its way: more would only delay what comes later, and
blur when a slow client has read something. As in trio's own streams."""
BYTES_WITHOUT_MESSAGE_MAX = 2 * MESSAGE_BYTES_MAX
"""What a client may send before a message is whole. trio-websocket keeps empty fragments, which
its size limit does not count; pings that were answered are not counted here either."""
PING_PERIOD_S = 20.0
SILENCE_S_MAX = 60.0
"""A client is dead when it has neither sent a byte nor taken one that waited, for so long."""
SILENCE_LOOKS = 6
"""How often it is looked within that."""
CLOSE_S = 1.0
"""What a client has to answer a close."""
CLOSE_REASON_BYTES_MAX = 123
"""RFC 6455, section 5.5.1."""

BODY_BYTES_MAX = 64 * 1024
"""No request over plain HTTP needs a body; one that comes is read and ignored up to here."""
BODY_S = 10.0
HTTP_IDLE_S = 30.0
"""Between two requests of one connection."""
HTTP_REQUESTS_MAX = 1_000
"""Of one connection; then the client connects again."""
HTTP_ANSWER_S = 30.0
"""What making an answer may take, and again what reading it may take."""
VIEW_ROWS_DEFAULT = 50
VIEW_ROWS_MAX = 200

ALARM_PERIOD_S = 60.0
"""Refusals for one reason are told once in so long, with their number."""
