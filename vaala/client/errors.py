"""What can go wrong between a client and a server, beside what the server refuses (`Refused`).

ClientError
+-- CannotConnect      no server answers as it must, and none was to be started; why, in one line
|   +-- CannotStart    a server was started and gave up; what it said, in its words
|   +-- NoAnswer       somebody listens and says nothing in time; it may be the server
+-- Disconnected       the connection broke and the request may or may not have been done
"""

from __future__ import annotations


class ClientError(Exception):
    """The base of what this package raises by itself."""


class CannotConnect(ClientError):
    """Nothing was sent to anybody but what opens a connection."""


class CannotStart(CannotConnect):
    """The message names who owns the data directory when ``locked``."""

    def __init__(self, message: str, *, locked: bool = False) -> None:
        super().__init__(message)
        self.locked = locked
        """Another process owns the data directory."""


class NoAnswer(CannotConnect):
    """A server that is stopped or hangs looks like this, and so does a stranger that waits."""


class Disconnected(ClientError):
    """The connection broke while a request was under way, or it could not be made again."""

    def __init__(self, message: str, *, outcome_known: bool = False) -> None:
        super().__init__(message)
        self.outcome_known = outcome_known
        """True: nothing was done. False: look before you do it again."""
