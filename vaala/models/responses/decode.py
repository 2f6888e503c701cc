"""The bytes of an answer of the Responses API as events. Sans-I/O.

An answer is complete when its terminal event came: ``response.completed``, ``.incomplete``,
``.failed``; that the connection closed, or ``[DONE]``, says nothing. Everything else, an error
inside a 200, a web page, nothing at all, raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vaala.models.base import ModelEvent, ProviderBlob, UsageReport
from vaala.models.body import BodyDecoder, cut_short, incomplete
from vaala.models.failures import Origin, failure_in_stream
from vaala.models.responses.finish import (
    FAILED,
    RUNNING,
    TERMINAL,
    failure_of_response,
    read_finish,
)
from vaala.models.responses.output import Output, TooMuch
from vaala.models.responses.replay import private_data
from vaala.models.responses.usage import read_usage
from vaala.models.sse import SseEvent
from vaala.models.wire import read_json

_DONE = b"[DONE]"
_KEEP_ALIVES = ("keepalive", "ping", "response.heartbeat")


class ResponsesDecoder(BodyDecoder):
    """See `Decoder`. ``names`` gives the names of tools by what they are called on the wire."""

    def __init__(self, origin: Origin, names: Mapping[str, str] | None = None) -> None:
        super().__init__(origin)
        self._output = Output(names)

    @property
    def finished(self) -> bool:
        return self.ended

    def _event(self, event: SseEvent) -> Iterator[ModelEvent]:
        data = event.data.strip()
        if not data or data == _DONE:
            return
        value = read_json(event.data)
        if not isinstance(value, dict):
            self._events_seen += 1
            if event.name == "error":
                raise failure_in_stream(self._origin, event.data)
            if event.name:
                return
            raise incomplete(self._origin, f"an event is no JSON object: {event.text}")
        kind = value.get("type")
        kind = kind if isinstance(kind, str) else event.name
        if kind in _KEEP_ALIVES:
            return
        self._events_seen += 1
        if kind == "error" or event.name == "error" or value.get("error"):
            raise failure_in_stream(self._origin, event.data)
        if kind in TERMINAL:
            response = value.get("response")
            response = response if isinstance(response, dict) else {}
            yield from self._close(response, TERMINAL[kind])
        else:
            try:
                yield from self._output.event(kind, value)
            except TooMuch as error:
                raise incomplete(self._origin, str(error)) from error

    def _close(self, response: dict[str, Any], status: str) -> Iterator[ModelEvent]:
        """Give the terminal event of a response, or say why it has none.

        ``status`` counts where the response has none of its own.
        """
        given = response.get("status")
        if isinstance(given, str) and given in (*FAILED, "incomplete", "completed"):
            status = given
        usage = response.get("usage")
        if isinstance(usage, dict):
            yield UsageReport(read_usage(usage))
        if status in FAILED or response.get("error"):
            raise failure_of_response(self._origin, response, status)
        yield from self._grow(self._output.whole_output(response.get("output")))
        yield from self._grow(self._output.end())
        output = self._output
        data = private_data(output.items)
        if data is not None and (output.chars or output.calls):
            # Where there is text it is kept with that, so that no empty message has to be.
            yield ProviderBlob("message" if output.chars else 0, data)
        self.ended = True
        details = response.get("incomplete_details")
        yield read_finish(status, details, calls=len(output.calls), refused=output.refused)

    def _grow(self, events: Iterable[ModelEvent]) -> Iterator[ModelEvent]:
        try:
            yield from events
        except TooMuch as error:
            raise incomplete(self._origin, str(error)) from error

    def _stream_ended(self) -> Iterator[ModelEvent]:
        raise cut_short(self._origin, self._events_seen)

    def _document(self, document: bytes) -> Iterator[ModelEvent]:
        self._events_seen = 1
        response = read_json(document)
        if not isinstance(response, dict | list):
            raise incomplete(self._origin, "the answer is neither a stream nor a JSON object")
        if isinstance(response, list) or not isinstance(response.get("output"), list):
            raise failure_in_stream(self._origin, document)
        if response.get("status") in RUNNING:
            text = f"the server answered with a response that is still {response['status']}"
            raise incomplete(self._origin, text)
        yield from self._close(response, "completed")
