"""The bounds of this package, with their units in their names."""

from __future__ import annotations

LOG_RECORDS_WAITING_MAX = 4_096
"""Records that wait for the disk; more are dropped, and counted in the log."""
LOG_BATCH_RECORDS_MAX = 256
"""Records of one write."""
LOG_TEXT_CHARS_MAX = 16 * 1024
"""What is kept of a message, and of a field."""
LOG_TRACEBACK_CHARS_MAX = 64 * 1024
LOG_CLOSING_S = 2.0
"""How long the end of a program waits for a disk that does not take its last records."""
SECRETS_KNOWN_MAX = 1_000
"""Secrets that are looked for in each text of a log, of the program's own and of others each."""

EXPORT_S = 4.0
"""How long one export of traces or metrics may take."""
CLOSING_S = 10.0
"""How long the end of the program waits for the last ones."""
SPANS_WAITING_MAX = 8_192
SPAN_BATCH_MAX = 512
EXPORT_PERIOD_S = 5.0
"""How long a span waits for others to be sent with."""
