"""`upgrade`: from a fresh connection to a WebSocket (RFC 6455, section 4), with HTTP by h11."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping

import h11
import trio
from msgspec import Struct

from vaala.client import limits

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Section 1.3."""
_VERSION = "13"


class Rejected(Exception):
    """An answer of HTTP that is no upgrade; ``body`` has the beginning of what it says."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status
        self.body = body


class NotWebSocket(Exception):
    """What answers speaks no WebSocket, or nothing at all that is known here."""


class HungUp(Exception):
    """The connection ended before there was an answer."""


class Accepted(Struct, frozen=True):
    headers: dict[str, str]
    """Of the answer, by lower-case name."""
    behind: bytes
    """What came right behind it."""


async def upgrade(
    stream: trio.abc.Stream, host: str, target: str, headers: Mapping[str, str]
) -> Accepted:
    """Ask for a WebSocket at ``target`` and read the answer; of the stream not a byte more is
    used.

    Raises `Rejected`, `NotWebSocket` and `HungUp`. Cancel: the stream is of no more use.
    """
    key = base64.b64encode(os.urandom(16))
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.HEAD_BYTES_MAX)
    asked = h11.Request(
        method="GET",
        target=target,
        headers=[
            ("Host", host),
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Key", key.decode()),
            ("Sec-WebSocket-Version", _VERSION),
            *headers.items(),
        ],
    )
    try:
        question = (http.send(asked) or b"") + (http.send(h11.EndOfMessage()) or b"")
        await stream.send_all(question)
        return await _answer(stream, http, key)
    except h11.RemoteProtocolError as error:
        raise NotWebSocket(str(error)) from error
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise HungUp from error


async def _answer(stream: trio.abc.Stream, http: h11.Connection, key: bytes) -> Accepted:
    status, body = 0, b""
    while True:
        match http.next_event():
            case h11.InformationalResponse(status_code=101) as answer:
                return _accepted(answer, key, bytes(http.trailing_data[0]))
            case h11.Response(status_code=status):
                pass
            case h11.Data(data=data):
                body += data
                if len(body) >= limits.HEAD_BYTES_MAX:
                    raise Rejected(status, body)
            case h11.EndOfMessage():
                raise Rejected(status, body)
            case h11.NEED_DATA:
                received = await stream.receive_some(limits.HEAD_BYTES_MAX)
                if not received and not status:
                    raise HungUp
                http.receive_data(bytes(received))
            case h11.InformationalResponse():
                pass  # a word in between, as 103
            case odd:
                raise NotWebSocket(f"it answers with {odd!r}")


def _accepted(answer: h11.InformationalResponse, key: bytes, behind: bytes) -> Accepted:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
    accepted = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    if headers.get("sec-websocket-accept") != accepted.decode():
        raise NotWebSocket("it does not accept the key")
    if "sec-websocket-extensions" in headers or "sec-websocket-protocol" in headers:
        raise NotWebSocket("it wants what was not asked for")
    return Accepted(headers, behind)
