"""Every limit of a connection, with its unit in its name. They are part of the protocol."""

from __future__ import annotations

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
"""One message to the server: an image or a pasted file fits."""
ANSWER_BYTES_MAX = 64 * 1024 * 1024
"""One message from the server: a snapshot or a page of long items is far larger than a request."""
BATCH_MESSAGES_MAX = 64
BATCH_BYTES_MAX = 1024 * 1024
"""A batch is taken apart before its messages are counted: this bounds the work and the memory."""
REQUESTS_MAX = 128
"""Requests of one side that the other has not answered yet."""
ID_CHARACTERS_MAX = 256
"""A request id is kept while the request runs, and sent back."""
METHOD_CHARACTERS_MAX = 128
"""A name that is not known is told back up to this length."""
ERROR_CHARACTERS_MAX = 4 * 1024
"""The text of one error."""
