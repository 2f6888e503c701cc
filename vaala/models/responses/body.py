"""The body of an answer: a stream of events, or a document where a stream was asked for."""

from __future__ import annotations

from vaala.models.limits import ANSWER_BYTES_MAX
from vaala.models.sse import EventTooLarge, SseDecoder, SseEvent

_SPACE = b" \t\r\n\xef\xbb\xbf"


class Body:
    """Takes a body in pieces of any size and gives its events; a document is kept whole."""

    def __init__(self) -> None:
        self._sse = SseDecoder()
        self._is_stream: bool | None = None
        self._document = bytearray()

    @property
    def document(self) -> bytes | None:
        """The body so far when it is a document."""
        return bytes(self._document).strip(_SPACE) if self._is_stream is False else None

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the events that ``piece`` completes; raises `EventTooLarge`.

        A stream is told from a document by its first character; content types are often wrong.
        """
        if self._is_stream is None:
            piece = piece.lstrip(_SPACE)
            if not piece:
                return []
            self._is_stream = piece[:1] not in (b"{", b"[", b"<")
        if self._is_stream:
            return self._sse.feed(piece)
        self._document += piece
        if len(self._document) > ANSWER_BYTES_MAX:
            raise EventTooLarge(f"the answer is larger than {ANSWER_BYTES_MAX} bytes")
        return []

    def end(self) -> list[SseEvent]:
        """Return the event that the end of a stream left without its blank line, if any."""
        return self._sse.flush() if self._is_stream else []
