"""The bytes of a generateContent answer as events. Sans-I/O.

They come as server-sent events, or as JSON where ``alt=sse`` was dropped on the way: an array that
is streamed, or one response. There is no terminal event of its own: an answer is complete when it
has a finish reason, and what comes after that is taken until the body ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

from vaala.models.base import (
    FirstByte,
    ModelEvent,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.body import cut_short, incomplete, web_page
from vaala.models.events import Decoder
from vaala.models.failures import Origin, failure_in_stream, failure_of_kind
from vaala.models.gemini.calls import CallAssembler, TooManyCalls
from vaala.models.gemini.finish import UNSPECIFIED, failure_kind, read_finish
from vaala.models.gemini.json_stream import ElementDecoder
from vaala.models.gemini.limits import SIGNATURES_BYTES_MAX
from vaala.models.gemini.names import ToolNames
from vaala.models.gemini.replay import Layout
from vaala.models.gemini.usage import read_usage
from vaala.models.sse import EventTooLarge, SseDecoder
from vaala.models.text_channel import TextChannel
from vaala.models.wire import json_bytes, read_json
from vaala_protocol.settings import Usage

_SPACE = b" \t\r\n\xef\xbb\xbf"
_DONE = b"[DONE]"
"""No word of this API; gateways that speak several add it."""

_Kind: TypeAlias = Literal["text", "thought"]
_Form: TypeAlias = Literal["?", "stream", "json", "page"]
_FORMS: dict[bytes, _Form] = {b"{": "json", b"[": "json", b"<": "page"}
"""By the first character; anything else begins a stream."""


class GeminiDecoder(Decoder):
    """See `Decoder`."""

    def __init__(self, origin: Origin, names: ToolNames | None = None) -> None:
        self._origin = origin
        self._form: _Form | None = None
        self._sse = SseDecoder()
        self._elements = ElementDecoder()
        self._layout = Layout()
        self._calls = CallAssembler(names or ToolNames(), self._layout)
        self._channels: dict[_Kind, TextChannel] = {"text": TextChannel(), "thought": TextChannel()}
        self._usage: Usage | None = None
        self._finish = ""
        self._finish_message = ""
        self._said = False
        self._room = SIGNATURES_BYTES_MAX
        self._events_seen = 0

    @property
    def finished(self) -> bool:
        return bool(self._finish)

    @property
    def events_seen(self) -> int:
        return self._events_seen

    def feed(self, piece: bytes) -> Iterator[ModelEvent]:
        if self._form is None:
            yield FirstByte()
            self._form = "?"
        if self._form == "?":
            piece = self._recognise(piece)
        try:
            bodies = self._bodies(piece)
        except EventTooLarge as error:
            raise incomplete(self._origin, str(error)) from error
        yield from self._take(bodies)

    def end(self) -> Iterator[ModelEvent]:
        """The body ended."""
        if self.ended:
            return
        if self._form == "page":
            raise web_page(self._origin)
        yield from self._take(event.data for event in self._sse.flush())
        if not self.ended:
            yield from self._close()

    def _recognise(self, piece: bytes) -> bytes:
        """Tell the form by the first character; content types are often wrong.

        Return the piece without the space before that, which means nothing in any form.
        """
        start = piece.lstrip(_SPACE)
        if start:
            self._form = _FORMS.get(start[:1], "stream")
        return start

    def _bodies(self, piece: bytes) -> list[bytes]:
        """Return the responses that ``piece`` completes."""
        if self._form == "stream":
            return [event.data for event in self._sse.feed(piece)]
        return self._elements.feed(piece) if self._form == "json" else []

    def _take(self, bodies: Iterable[bytes]) -> Iterator[ModelEvent]:
        for body in bodies:
            if self.ended:
                return
            data = body.strip()
            if data == _DONE:
                yield from self._close()
            elif data:
                self._events_seen += 1
                yield from self._response(data)

    def _response(self, data: bytes) -> Iterator[ModelEvent]:
        response = read_json(data)
        if not isinstance(response, dict):
            if self.finished:
                return
            text = data.decode("utf-8", "replace")
            raise incomplete(self._origin, f"an event is no JSON object: {text}")
        if response.get("error"):
            raise failure_in_stream(self._origin, json_bytes(response))
        usage = response.get("usageMetadata")
        report = read_usage(usage) if isinstance(usage, dict) else None
        if report is not None and report != self._usage:
            self._usage = report
            yield UsageReport(report)
        candidates = response.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else ():
            # Only one answer is asked for.
            if isinstance(candidate, dict) and not candidate.get("index"):
                yield from self._candidate(candidate)
        self._refuse_blocked(response.get("promptFeedback"))

    def _refuse_blocked(self, feedback: Any) -> None:
        """A prompt that is blocked has no candidate, and will be blocked again."""
        reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if not reason or self.finished:
            return
        told = feedback.get("blockReasonMessage")
        text = f"the prompt was blocked ({reason})" + (f": {told}" if told else "")
        raise failure_of_kind(self._origin, "refused", text)

    def _candidate(self, candidate: dict[str, Any]) -> Iterator[ModelEvent]:
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                yield from self._part(part)
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason != UNSPECIFIED:
            self._finish = reason
        told = candidate.get("finishMessage")
        self._finish_message = told if isinstance(told, str) else self._finish_message

    def _part(self, part: dict[str, Any]) -> Iterator[ModelEvent]:
        signature = self._signature(part)
        call = part.get("functionCall")
        if isinstance(call, dict):
            try:
                yield from self._calls.feed(call, signature)
            except TooManyCalls as error:
                raise incomplete(self._origin, str(error)) from error
            return
        text = part.get("text")
        kind: _Kind = "thought" if part.get("thought") is True else "text"
        if isinstance(text, str) or signature:
            yield from self._say(kind, text if isinstance(text, str) else "", signature)

    def _signature(self, part: dict[str, Any]) -> str:
        """Return the signature of a part, "" for one that there is no room for."""
        signature = part.get("thoughtSignature")
        if not isinstance(signature, str) or len(signature) > self._room:
            return ""
        self._room -= len(signature)
        return signature

    def _say(self, kind: _Kind, text: str, signature: str) -> Iterator[ModelEvent]:
        channel = self._channels[kind]
        piece = channel.feed(text)
        if signature:
            # A signed part is whole: half of a character at its end stays one.
            piece += channel.end()
        self._layout.say(kind, len(piece), signature)
        if piece:
            self._said = self._said or kind == "text"
            yield TextDelta(piece) if kind == "text" else ReasoningDelta(piece)

    def _close(self) -> Iterator[ModelEvent]:
        """Give the terminal event, or say why there is none."""
        if not self._finish:
            raise cut_short(self._origin, self._events_seen)
        empty = not self._said and not len(self._calls)
        kind = failure_kind(self._finish, empty=empty)
        if kind is not None:
            text = f"the server ended the answer with {self._finish} {self._finish_message}"
            raise failure_of_kind(self._origin, kind, text, retryable=kind == "incomplete")
        kinds: tuple[_Kind, ...] = ("thought", "text")
        for one in kinds:
            if piece := self._channels[one].end():
                self._layout.say(one, len(piece))
                yield TextDelta(piece) if one == "text" else ReasoningDelta(piece)
        yield from self._calls.end()
        data = self._layout.data()
        if data is not None:
            yield ProviderBlob("message", data)
        self.ended = True
        yield read_finish(self._finish, calls=len(self._calls))
