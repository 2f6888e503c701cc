"""Refusals: expected answers to a client that asked for what cannot be.

Refused
+-- BadRequest        a value is wrong; the text names it and the way out
|   +-- ModelUnreachable  the server that would tell which models it has does not answer
+-- UnknownMethod     the other side does not have this method
+-- InvalidMessage    the other side could not read what it got
+-- Incompatible      the two sides speak different major versions of the protocol
|   +-- Outdated        the server is older and idle: it ends now, so that the client starts its own
+-- NotFound          no such conversation, session, turn, input or approval
+-- NotPending        the approval, question or input was settled before
+-- Busy              it cannot be done while something else is going on
+-- Overloaded        a bounded queue is full; nothing was done
+-- NotDurable        the change could not be written to disk; nothing was done
+-- Unreadable        what is on disk could not be read
+-- Stopping          the actor ended before it answered; the change may or may not stand
+-- TimedOut          the time for an answer was over; the change may or may not stand
+-- Failed            a fault in the program, logged there under a trace id
"""

from __future__ import annotations


class Refused(Exception):
    """The client gets this as its answer; the actor lives on."""

    code: str = "refused"
    """Names the kind on the wire. An instance made from a code that is not known carries it."""


class BadRequest(Refused):
    code = "bad_request"

    def __init__(self, text: str, *, field: str = "") -> None:
        super().__init__(text)
        self.field = field
        """The parameter that is wrong, as in ``content[0].text``; empty: none alone is."""


class ModelUnreachable(BadRequest):
    code = "model_unreachable"


class UnknownMethod(Refused):
    code = "unknown_method"


class InvalidMessage(Refused):
    code = "invalid_message"


class Incompatible(Refused):
    code = "incompatible"


class Outdated(Incompatible):
    code = "outdated"


class NotFound(Refused):
    code = "not_found"


class NotPending(Refused):
    code = "not_pending"


class Busy(Refused):
    code = "busy"


class Overloaded(Refused):
    code = "overloaded"


class NotDurable(Refused):
    code = "not_durable"


class Unreadable(Refused):
    code = "unreadable"


class Stopping(Refused):
    code = "stopping"


class TimedOut(Refused):
    code = "timed_out"


class Failed(Refused):
    """Made where a connection is fenced, for what was not expected; never raised by an actor."""

    code = "failed"

    def __init__(self, text: str, *, trace: str = "") -> None:
        super().__init__(text)
        self.trace = trace
        """Finds the traceback in the log of the server."""
