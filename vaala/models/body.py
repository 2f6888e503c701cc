"""The body of an answer: a stream of events, or a document where a stream was asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from vaala.models.base import FirstByte, ModelEvent, ModelFailure
from vaala.models.events import Decoder
from vaala.models.failures import Origin, failure_of_kind
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


class BodyDecoder(Decoder):
    """A decoder of events; a document in their place is read as the whole answer."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._body = Body()
        self._begun = False
        self._events_seen = 0
        """Counted by `_event`: only that knows what is progress."""

    @property
    def events_seen(self) -> int:
        return self._events_seen

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        if not self._begun:
            self._begun = True
            yield FirstByte()
        try:
            events = self._body.feed(piece)
        except EventTooLarge as error:
            raise incomplete(self._origin, str(error)) from error
        yield from self._until_ended(events)

    def end(self) -> Iterator[ModelEvent]:
        if self.ended:
            return
        document = self._body.document
        if document is not None:
            if document.startswith(b"<"):
                raise web_page(self._origin)
            yield from self._document(document)
            return
        yield from self._until_ended(self._body.end())
        if not self.ended:
            yield from self._stream_ended()

    def _until_ended(self, events: Iterable[SseEvent]) -> Iterator[ModelEvent]:
        for event in events:
            if self.ended:
                return
            yield from self._event(event)

    @abstractmethod
    def _event(self, event: SseEvent) -> Iterator[ModelEvent]:
        """Take an event of the stream."""

    @abstractmethod
    def _document(self, document: bytes) -> Iterator[ModelEvent]:
        """Take the whole answer; it is no page of HTML."""

    @abstractmethod
    def _stream_ended(self) -> Iterator[ModelEvent]:
        """Give the terminal event, or say why there is none: the stream ended without one."""


def cut_short(origin: Origin, events_seen: int) -> ModelFailure:
    """Return what a stream that ended without its terminal event is."""
    return incomplete(
        origin, f"the answer {'ended before it was complete' if events_seen else 'was empty'}"
    )


def incomplete(origin: Origin, text: str) -> ModelFailure:
    return failure_of_kind(origin, "incomplete", text, retryable=True)


def web_page(origin: Origin) -> ModelFailure:
    text = "the server answered with a web page: is the base URL right, or does a gateway"
    return failure_of_kind(origin, "network", f"{text} want a login first?")
