"""`refusal_of`: what a client is told when a request of it went wrong."""

from __future__ import annotations

import logging
from secrets import token_hex

from vaala_protocol.errors import Failed, Refused, Unreadable
from vaala_storage.errors import StorageError

log = logging.getLogger(__name__)


def refusal_of(error: Exception, what: str) -> Refused:
    """Return the refusal that stands for an exception.

    What is not expected becomes a `Failed` with a trace id, under which the log has the traceback.
    """
    error = _only(error)
    if isinstance(error, Refused):
        return error
    if isinstance(error, StorageError):
        log.warning("%s: %s", what, error)
        return Unreadable(f"the data directory could not be used: {error}")
    trace = token_hex(8)
    log.error("%s failed (trace %s)", what, trace, exc_info=error)
    return Failed(
        f"a fault in the server ({type(error).__name__}); its log tells more under trace {trace}",
        trace=trace,
    )


def _only(error: Exception) -> Exception:
    """Return the error in a group that a nursery has made around a single one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
