"""The bytes of a chat-completions answer as events: a stream, or a document where one was asked
for as a stream. Sans-I/O.

An answer is complete when the server said how it finished or sent ``[DONE]``; that the connection
closed says nothing. Everything else, an error inside a 200, a web page, nothing at all, raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from vaala.models.base import (
    Finish,
    FirstByte,
    ModelEvent,
    ModelFailure,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.chat.calls import CallAssembler, TooManyCalls
from vaala.models.chat.finish import failure_kind, read_finish
from vaala.models.chat.text import TextChannel
from vaala.models.chat.usage import read_usage
from vaala.models.events import Decoder
from vaala.models.failures import Origin, failure_in_stream, failure_of_kind
from vaala.models.limits import ANSWER_BYTES_MAX
from vaala.models.sse import EventTooLarge, SseDecoder, SseEvent
from vaala_protocol.base import Malformed, decode
from vaala_protocol.settings import Usage

_DONE = b"[DONE]"
_SPACE = b" \t\r\n\xef\xbb\xbf"


class ChatDecoder(Decoder):
    """See `Decoder`."""

    def __init__(self, origin: Origin, tool_names: frozenset[str] = frozenset()) -> None:
        self._origin = origin
        self._sse = SseDecoder()
        self._form: str | None = None
        self._document = bytearray()
        self._text = TextChannel()
        self._reasoning = TextChannel()
        self._calls = CallAssembler(tool_names)
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._said = False
        self._refused = False
        self._events_seen = 0

    @property
    def finished(self) -> bool:
        return self._finish is not None

    @property
    def events_seen(self) -> int:
        return self._events_seen

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        if self._form is None:
            yield FirstByte()
            self._form = "?"
        if self._form == "?":
            piece = self._recognise(piece)
        if self._form == "document":
            self._document += piece
        if len(self._document) > ANSWER_BYTES_MAX:
            raise self._incomplete(f"the answer is larger than {ANSWER_BYTES_MAX} bytes")
        if piece and self._form == "stream":
            try:
                events = self._sse.feed(piece)
            except EventTooLarge as error:
                raise self._incomplete(str(error)) from error
            for event in events:
                if not self.ended:
                    yield from self._event(event)

    def end(self) -> Iterator[ModelEvent]:
        """The body ended."""
        if self.ended:
            return
        if self._form == "document":
            yield from self._whole_document()
            return
        for event in self._sse.flush():
            yield from self._event(event)
        if not self.ended:
            yield from self._close(None)

    def _recognise(self, piece: bytes) -> bytes:
        """Tell a stream from a document by its first character; content types are often wrong.

        Return the piece without the space before that, which means nothing in either form.
        """
        start = piece.lstrip(_SPACE)
        if start:
            self._form = "document" if start[:1] in (b"{", b"[", b"<") else "stream"
        return start

    def _event(self, event: SseEvent) -> Iterator[ModelEvent]:
        self._events_seen += 1
        data = event.data.strip()
        if not data:
            return
        if data == _DONE:
            yield from self._close("done")
            return
        chunk = _parse(event)
        if not isinstance(chunk, dict):
            if event.name == "error":
                raise failure_in_stream(self._origin, event.data)
            if event.name or self.finished:
                return
            raise self._incomplete(f"an event is no JSON object: {event.text}")
        if event.name == "error" or chunk.get("error") or chunk.get("object") == "error":
            raise failure_in_stream(self._origin, event.data)
        yield from self._chunk(chunk)

    def _chunk(self, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            # Only one answer is asked for.
            if isinstance(choice, dict) and not choice.get("index"):
                yield from self._choice(choice)
        usage = chunk.get("usage")
        if usage is None and isinstance(chunk.get("x_groq"), dict):
            usage = chunk["x_groq"].get("usage")
        if isinstance(usage, dict):
            report = read_usage(usage)
            if report != self._usage:
                self._usage = report
                yield UsageReport(report)

    def _choice(self, choice: dict[str, Any]) -> Iterator[ModelEvent]:
        if choice.get("error"):
            raise failure_in_stream(self._origin, json.dumps({"error": choice["error"]}).encode())
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
        if isinstance(delta, dict):
            yield from self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason

    def _delta(self, delta: dict[str, Any]) -> Iterator[ModelEvent]:
        # The two names of one thing; a server that sends both sends the same text in both.
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        content = delta.get("content")
        if isinstance(content, list):
            thought = thought or "".join(_parts(content, "thinking"))
            content = "".join(_parts(content, "text"))
        if isinstance(thought, str) and (piece := self._reasoning.feed(thought)):
            yield ReasoningDelta(piece)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            content = f"{content or ''}{refusal}"
        if isinstance(content, str) and (piece := self._text.feed(content)):
            self._said = True
            yield TextDelta(piece)
        try:
            yield from self._calls.feed(delta.get("tool_calls"))
            yield from self._calls.feed_legacy(delta.get("function_call"))
        except TooManyCalls as error:
            raise self._incomplete(str(error)) from error

    def _close(self, terminal: str | None) -> Iterator[ModelEvent]:
        """Give the terminal event, or say why there is none."""
        if self._finish is None and terminal is None:
            what = "ended before it was complete" if self._events_seen else "was empty"
            raise self._incomplete(f"the answer {what}")
        raw = self._finish or ""
        kind = failure_kind(raw)
        if kind is not None:
            text = f"the server ended the answer with {raw!r}"
            raise failure_of_kind(self._origin, kind, text, retryable=kind != "context_overflow")
        if not raw and not self._said and not len(self._calls):
            raise self._incomplete("the answer was empty")
        if piece := self._reasoning.end():
            yield ReasoningDelta(piece)
        if piece := self._text.end():
            yield TextDelta(piece)
        yield from self._calls.end()
        self.ended = True
        yield self._finish_event(raw)

    def _finish_event(self, raw: str) -> Finish:
        return read_finish(raw, calls=len(self._calls), said=self._said, refused=self._refused)

    def _whole_document(self) -> Iterator[ModelEvent]:
        body = bytes(self._document)
        if body.lstrip(_SPACE).startswith(b"<"):
            text = "the server answered with a web page: is the base URL right, or does a gateway"
            raise failure_of_kind(self._origin, "network", f"{text} want a login first?")
        self._events_seen = 1
        document = _parse(SseEvent("", body.strip()))
        if isinstance(document, list):
            # Google answers with errors in an array.
            raise failure_in_stream(self._origin, body)
        if not isinstance(document, dict):
            raise self._incomplete("the answer is neither a stream nor a JSON object")
        if document.get("error") or not isinstance(document.get("choices"), list):
            raise failure_in_stream(self._origin, body)
        yield from self._chunk(document)
        yield from self._close(None)

    def _incomplete(self, text: str) -> ModelFailure:
        return failure_of_kind(self._origin, "incomplete", text, retryable=True)


def _parse(event: SseEvent) -> Any:
    """Return the JSON of an event, None when it is none.

    The second, slower reader takes what the first refuses and servers send: bytes that are no
    UTF-8, half of a surrogate pair, control characters in strings.
    """
    try:
        return decode(event.data)
    except Malformed:
        pass
    try:
        return json.loads(event.text, strict=False)
    except (ValueError, RecursionError):
        return None


def _parts(content: list[Any], kind: str) -> Iterator[str]:
    """Give the texts of content that came in parts: ``text`` ones, or Mistral's ``thinking``."""
    for part in content:
        if not isinstance(part, dict) or part.get("type") != kind:
            continue
        value = part.get(kind)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _parts(value, "text")
