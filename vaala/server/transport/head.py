"""`read_head`: a request's head, from whatever it is that a connection sends."""

from __future__ import annotations

import h11
import trio
from msgspec import Struct

from vaala.server.transport import limits
from vaala.server.transport.refusal import Refusal
from vaala.server.transport.stream import ClientStream


class Head(Struct, frozen=True):
    """What was asked, without its body."""

    method: str
    path: str
    """Still with percent signs; the query is not in it."""
    query: str
    headers: dict[str, str]
    """By lower-case name; values of the same name are joined with a comma."""
    version: str
    raw: bytes
    """The bytes of all this, for the first request of a connection."""
    behind: bytes
    """What came right behind it."""

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    def lists(self, name: str, token: str) -> bool:
        """Tell whether a header that is a list holds a word, in whatever case."""
        return token in [word.strip().lower() for word in self.header(name).split(",")]

    @property
    def upgrades(self) -> bool:
        """It asks for a WebSocket."""
        return self.lists("upgrade", "websocket") and self.lists("connection", "upgrade")


def new_connection() -> h11.Connection:
    """Return the state of one connection to a client."""
    return h11.Connection(h11.SERVER, max_incomplete_event_size=limits.HEAD_BYTES_MAX)


async def read_head(
    stream: ClientStream, connection: h11.Connection, *, within_s: float
) -> Head | None:
    """Return the next head, or None when nothing came.

    Raises `Refusal` for what is no head of HTTP/1.1 or does not come in time, and as trio's
    streams do. Cancel: what was read is lost.
    """
    raw = b""
    with trio.move_on_after(within_s):
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError as error:
                status, text = error.error_status_hint, f"this is not HTTP/1.1: {str(error)[:200]}"
                raise Refusal(status, text) from None
            match event:
                case h11.Request():
                    return _head(event, raw, bytes(connection.trailing_data[0]))
                case h11.NEED_DATA:
                    data = await stream.receive_some(limits.HEAD_BYTES_MAX)
                    raw += data
                    connection.receive_data(data)
                case _:  # the client has closed its side between two requests
                    return None
    if not raw and not connection.trailing_data[0]:
        return None
    raise Refusal(408, f"the request did not come within {within_s:g} seconds")


def _head(event: h11.Request, raw: bytes, behind: bytes) -> Head:
    version = event.http_version.decode()
    if version not in ("1.0", "1.1"):
        raise Refusal(505, f"this server speaks HTTP/1.1, and not HTTP/{version}")
    path, _, query = event.target.decode("latin-1").partition("?")
    headers: dict[str, str] = {}
    for name, value in event.headers:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    method = event.method.decode("latin-1")
    raw = raw[: len(raw) - len(behind)]
    return Head(method, path, query, headers, version, raw, behind)
