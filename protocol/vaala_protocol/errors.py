"""Refusals: expected answers to a client that asked for what cannot be.

Refused
+-- BadRequest        a value is wrong; the text names it and the way out
+-- NotFound          no such conversation, session, turn, input or approval
+-- NotPending        the approval, question or input was settled before
+-- Busy              it cannot be done while something else is going on
+-- Overloaded        a bounded queue is full; nothing was done
+-- NotDurable        the change could not be written to disk; nothing was done
+-- Unreadable        what is on disk could not be read
+-- Stopping          the actor ended before it answered; the change may or may not stand
"""

from __future__ import annotations

from typing import ClassVar


class Refused(Exception):
    """The client gets this as its answer; the actor lives on."""

    code: ClassVar[str] = "refused"


class BadRequest(Refused):
    code = "bad_request"


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
