"""Server-sent events from bytes, by the rules of the WHATWG (HTML, 9.2.6).

Lines end at LF, CRLF or CR and at nothing else: text-based line iteration also cuts at U+2028 and
U+0085, which may stand raw in JSON. Bytes become text only in a complete event.
"""

from __future__ import annotations

from msgspec import Struct

from vaala.models.limits import SSE_EVENT_BYTES_MAX

_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """An event outgrew the limit; the stream cannot go on."""


class SseEvent(Struct, frozen=True):
    name: str
    """Empty when the stream did not name it."""
    data: bytes

    @property
    def text(self) -> str:
        """The data as text; a byte that is no UTF-8 becomes U+FFFD."""
        return self.data.decode("utf-8", "replace")


class SseDecoder:
    """Takes the bytes of a stream in pieces of any size and gives its complete events.

    An event without a data line is no event. What follows the last blank line is dropped, as the
    rules want, unless `flush` is called.
    """

    def __init__(self, event_bytes_max: int = SSE_EVENT_BYTES_MAX) -> None:
        self._limit = event_bytes_max
        self._rest = bytearray()
        self._scanned = 0
        self._after_cr = False
        self._at_start = True
        self._name = b""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the events that ``piece`` completes; raises `EventTooLarge`."""
        self._rest += piece
        if self._at_start and not self._skip_bom():
            return []
        events: list[SseEvent] = []
        for line in self._complete_lines():
            self._take(line, events)
        if len(self._rest) + self._data_bytes > self._limit:
            raise EventTooLarge(f"an event of the stream is larger than {self._limit} bytes")
        return events

    def flush(self) -> list[SseEvent]:
        """Return the event that the end of the stream left without its blank line, if any.

        For servers that close right after the last data line. A cut-off event fails to parse.
        """
        events: list[SseEvent] = []
        if self._rest:
            self._take(bytes(self._rest), events)
            self._rest.clear()
        self._take(b"", events)
        return events

    def _skip_bom(self) -> bool:
        """Drop a byte order mark; False while it cannot be told yet."""
        if len(self._rest) < len(_BOM) and _BOM.startswith(bytes(self._rest)):
            return False
        if self._rest.startswith(_BOM):
            del self._rest[: len(_BOM)]
        self._at_start = False
        return True

    def _complete_lines(self) -> list[bytes]:
        """Cut off what ends in a line end; each byte is looked at once, however small the pieces.

        A CR ends its line at once; when it was the last byte, an LF that follows is part of it.
        """
        rest = self._rest
        if self._after_cr and rest:
            if rest.startswith(b"\n"):
                del rest[:1]
            self._after_cr = False
        cut = max(rest.rfind(b"\n", self._scanned), rest.rfind(b"\r", self._scanned)) + 1
        if cut == 0:
            self._scanned = len(rest)
            return []
        whole = bytes(rest[:cut])
        del rest[:cut]
        self._scanned = len(rest)
        self._after_cr = not rest and whole.endswith(b"\r")
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = whole.split(b"\n")
        lines.pop()
        return lines

    def _take(self, line: bytes, events: list[SseEvent]) -> None:
        if not line:
            if self._data:
                name = self._name.decode("utf-8", "replace")
                events.append(SseEvent(name, b"\n".join(self._data)))
                self._data = []
                self._data_bytes = 0
            self._name = b""
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1  # of its line feed, so that empty lines count too
        elif field == b"event":
            self._name = value
