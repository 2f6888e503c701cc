"""The bytes of an answer of the Messages API as events: a stream, or a document where one was asked
for as a stream. Sans-I/O.

An answer is complete when the server gave its stop reason; that the connection closed says
nothing. Everything else, an error inside a 200, a web page, nothing at all, raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from vaala.models.anthropic.blocks import Blocks, TooManyCalls
from vaala.models.anthropic.finish import WINDOW_FULL, read_finish
from vaala.models.anthropic.usage import UsageReader
from vaala.models.base import ModelEvent, UsageReport
from vaala.models.body import BodyDecoder, cut_short, incomplete
from vaala.models.failures import Origin, failure_in_stream, failure_of_kind
from vaala.models.sse import SseEvent
from vaala.models.wire import read_json
from vaala_protocol.settings import Usage

_NEEDED = ("", "message_start", "content_block_start", "content_block_delta", "message_delta")
"""Names of events whose data must be there; what another one holds does not matter."""
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


class AnthropicDecoder(BodyDecoder):
    """See `Decoder`. ``tool_names`` are the names of tools by what they are called on the wire."""

    def __init__(self, origin: Origin, tool_names: Mapping[str, str] = _NO_NAMES) -> None:
        super().__init__(origin)
        self._message: Any = None
        """The id of the message that is coming."""
        self._blocks = Blocks(tool_names)
        self._usage = UsageReader()
        self._reported: Usage | None = None
        self._finish: str | None = None
        self._details: Any = None

    @property
    def finished(self) -> bool:
        return self._finish is not None

    def _event(self, event: SseEvent) -> Iterator[ModelEvent]:
        data = read_json(event.data)
        if event.name == "error" or (isinstance(data, dict) and _is_error(data)):
            raise failure_in_stream(self._origin, event.data)
        if isinstance(data, dict):
            yield from self._named(data.get("type") or event.name, data)
        elif event.name in _NEEDED and not self.finished:
            raise incomplete(self._origin, f"an event is no JSON object: {event.text}")

    def _named(self, kind: Any, data: dict[str, Any]) -> Iterator[ModelEvent]:
        self._events_seen += kind != "ping"
        try:
            match kind:
                case "message_start":
                    yield from self._start(data.get("message"))
                case "content_block_start":
                    yield from self._blocks.start(data)
                case "content_block_delta":
                    yield from self._blocks.delta(data)
                case "message_delta":
                    self._stop(data.get("delta"))
                    yield from self._report(data.get("usage"))
                case "message_stop":
                    self._finish = self._finish or ""
                    yield from self._close()
                case _:
                    pass
        except TooManyCalls as error:
            raise incomplete(self._origin, str(error)) from error

    def _start(self, message: Any) -> Iterator[ModelEvent]:
        if not isinstance(message, dict):
            return
        if self._blocks.any and message.get("id") != self._message:
            yield from self._blocks.begin_again()
            self._finish = None
        self._message = message.get("id")
        yield from self._report(message.get("usage"))

    def _stop(self, delta: Any) -> None:
        if not isinstance(delta, dict):
            return
        reason = delta.get("stop_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason
        self._details = delta.get("stop_details") or self._details

    def _report(self, fields: Any) -> Iterator[ModelEvent]:
        usage = self._usage.read(fields)
        if usage is not None and usage != self._reported:
            self._reported = usage
            yield UsageReport(usage)

    def _close(self) -> Iterator[ModelEvent]:
        """Give the terminal event, or say why there is none."""
        if self._finish is None or (not self._finish and not self._blocks.any):
            raise cut_short(self._origin, self._events_seen)
        yield from self._blocks.end()
        if self._finish == WINDOW_FULL:
            text = "the answer filled the context window and is cut"
            raise failure_of_kind(self._origin, "context_overflow", text)
        self.ended = True
        calls, said = self._blocks.calls, self._blocks.said
        yield read_finish(self._finish, self._details, calls=calls, said=said)

    def _stream_ended(self) -> Iterator[ModelEvent]:
        return self._close()

    def _document(self, document: bytes) -> Iterator[ModelEvent]:
        message = read_json(document)
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list):
            if message is None:
                raise incomplete(self._origin, "the answer is neither a stream nor a JSON object")
            raise failure_in_stream(self._origin, document)
        yield from self._named("message_start", {"message": message})
        for index, block in enumerate(content):
            yield from self._named("content_block_start", {"index": index, "content_block": block})
        self._stop(message)
        yield from self._close()


def _is_error(data: dict[str, Any]) -> bool:
    return data.get("type") == "error" or (bool(data.get("error")) and "type" not in data)
