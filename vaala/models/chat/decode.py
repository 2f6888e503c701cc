"""The bytes of a chat-completions answer as events: a stream, or a document where one was asked
for as a stream. Sans-I/O.

An answer is complete when the server said how it finished or sent ``[DONE]``; that the connection
closed says nothing. Everything else, an error inside a 200, a web page, nothing at all, raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from vaala.models.base import (
    Finish,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.body import BodyDecoder, cut_short, incomplete
from vaala.models.chat.calls import CallAssembler, TooManyCalls
from vaala.models.chat.finish import failure_kind, read_finish
from vaala.models.chat.usage import read_usage
from vaala.models.failures import Origin, failure_in_stream, failure_of_kind
from vaala.models.sse import SseEvent
from vaala.models.text_channel import TextChannel
from vaala.models.wire import json_bytes, read_json
from vaala_protocol.settings import Usage

_DONE = b"[DONE]"
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


class ChatDecoder(BodyDecoder):
    """See `Decoder`. ``tool_names`` are the names of tools by what they are called on the wire."""

    def __init__(self, origin: Origin, tool_names: Mapping[str, str] = _NO_NAMES) -> None:
        super().__init__(origin)
        self._text = TextChannel()
        self._reasoning = TextChannel()
        self._calls = CallAssembler(tool_names)
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._said = False
        self._refused = False

    @property
    def finished(self) -> bool:
        return self._finish is not None

    def _event(self, event: SseEvent) -> Iterator[ModelEvent]:
        self._events_seen += 1
        data = event.data.strip()
        if not data:
            return
        if data == _DONE:
            yield from self._close("done")
            return
        chunk = read_json(event.data)
        if not isinstance(chunk, dict):
            if event.name == "error":
                raise failure_in_stream(self._origin, event.data)
            if event.name or self.finished:
                return
            raise incomplete(self._origin, f"an event is no JSON object: {event.text}")
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
            raise failure_in_stream(self._origin, json_bytes({"error": choice["error"]}))
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
            raise incomplete(self._origin, str(error)) from error

    def _close(self, terminal: str | None) -> Iterator[ModelEvent]:
        """Give the terminal event, or say why there is none."""
        if self._finish is None and terminal is None:
            raise cut_short(self._origin, self._events_seen)
        raw = self._finish or ""
        kind = failure_kind(raw)
        if kind is not None:
            text = f"the server ended the answer with {raw!r}"
            raise failure_of_kind(self._origin, kind, text, retryable=kind != "context_overflow")
        if not raw and not self._said and not len(self._calls):
            raise incomplete(self._origin, "the answer was empty")
        if piece := self._reasoning.end():
            yield ReasoningDelta(piece)
        if piece := self._text.end():
            yield TextDelta(piece)
        yield from self._calls.end()
        self.ended = True
        yield self._finish_event(raw)

    def _finish_event(self, raw: str) -> Finish:
        return read_finish(raw, calls=len(self._calls), said=self._said, refused=self._refused)

    def _stream_ended(self) -> Iterator[ModelEvent]:
        return self._close(None)

    def _document(self, document: bytes) -> Iterator[ModelEvent]:
        self._events_seen = 1
        answer = read_json(document)
        if isinstance(answer, list):
            # Google answers with errors in an array.
            raise failure_in_stream(self._origin, document)
        if not isinstance(answer, dict):
            raise incomplete(self._origin, "the answer is neither a stream nor a JSON object")
        if answer.get("error") or not isinstance(answer.get("choices"), list):
            raise failure_in_stream(self._origin, document)
        yield from self._chunk(answer)
        yield from self._close(None)


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
