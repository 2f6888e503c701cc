"""`Wire`: one client's two-way road of whole messages, whatever carries them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from msgspec import Struct


class WireClosed(Exception):
    """The other side has gone, or this side has closed: nothing comes or goes any more."""

    def __init__(self, code: int = 1006, reason: str = "") -> None:
        super().__init__(f"the connection is closed ({code}{': ' if reason else ''}{reason})")
        self.code = code
        """A close code as in RFC 6455, section 7.4; 1006: without a word."""
        self.reason = reason


class PeerInfo(Struct, frozen=True):
    """Who is at the other end, as the transport knows it."""

    address: str
    """For logs and status: ``127.0.0.1:51234``, or the path of a socket."""
    local: bool
    """It is on this machine (loopback or a unix socket): its environment may be taken over."""


class Wire(ABC):
    """One task receives and one sends, at the same time; `abort` comes from any."""

    @abstractmethod
    async def receive(self) -> str | bytes:
        """Return the next message, of at most the size that the transport allows.

        Raises `WireClosed`. Cancel: nothing is lost.
        """

    @abstractmethod
    async def send(self, *messages: bytes) -> None:
        """Send each as one text message in UTF-8; waits for as long as the peer does not read.

        Raises `WireClosed`. Cancel: a message may be half sent; then only `abort` may follow.
        """

    @abstractmethod
    def abort(self) -> None:
        """Close at once, without a word; whoever waits in `receive` or `send` gets `WireClosed`."""

    @abstractmethod
    async def close(self, code: int, reason: str) -> None:
        """Tell the peer that it is over, and why, and close. Harmless when it is closed.

        ``reason`` has at most 123 bytes. Cancel: the wire may be open still; `abort` it.
        """
