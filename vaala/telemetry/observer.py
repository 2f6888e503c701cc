"""`TracingObserver`: makes spans and counts of what the runtime tells. Imports OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

import trio
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from vaala.observer import Gauge, ModelWork, Observer, ToolWork, TurnWork, Work
from vaala_protocol.settings import Usage

_FAILED = frozenset({"failed", "error"})
_GAUGES: Mapping[Gauge, str] = {
    "conversations": "Open conversations",
    "clients": "Connected clients",
}


class TracedWork(Work):
    """A piece of work with its span; ``state`` is how it ended."""

    __slots__ = ("_span", "state", "usage")

    def __init__(self, span: Span) -> None:
        self._span = span
        self.state = ""
        self.usage: tuple[str, Usage] | None = None

    def ended(self, state: str, reason: str = "") -> None:
        self.state = state
        self._span.set_attribute("vaala.state", state)
        if reason:
            self._span.set_attribute("vaala.reason", reason)
        if state in _FAILED:
            self._span.set_attribute("error.type", reason or state)
            self._span.set_status(Status(StatusCode.ERROR))

    def used(self, model: str, usage: Usage) -> None:
        self.usage = (model, usage)
        read = usage.input + usage.cache_read + usage.cache_write
        self._span.set_attribute("gen_ai.usage.input_tokens", read)
        self._span.set_attribute("gen_ai.usage.output_tokens", usage.output + usage.reasoning)

    def broke(self, error: BaseException) -> None:
        """An exception left the work: its kind is kept, its text may tell too much."""
        if self.state:
            return
        cancelled = isinstance(error, trio.Cancelled)
        self.ended("cancelled" if cancelled else "error", "" if cancelled else _kind(error))


class TracingObserver(Observer):
    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._by_turn: dict[str, Context] = {}
        self._by_session: dict[str, Context] = {}
        self._gauges: dict[Gauge, Callable[[], int]] = {}
        self._turns = meter.create_counter("vaala.turns", "{turn}", "Turns that ended")
        self._tokens = meter.create_counter("vaala.tokens", "{token}", "Tokens, by class")
        self._calls = meter.create_counter("vaala.tool.calls", "{call}", "Tool calls that ended")
        self._model_s = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Time of a model call"
        )
        self._append_s = meter.create_histogram(
            "vaala.append.duration", "s", "Time until an append is durable"
        )
        for gauge, text in _GAUGES.items():
            meter.create_observable_gauge(f"vaala.{gauge}", [self._reader(gauge)], "1", text)

    @contextmanager
    def turn(self, work: TurnWork) -> Generator[TracedWork]:
        # A task inherits the context of whoever started it: what a turn belongs to is said instead.
        above = self._by_turn.get(work.parent_turn_id or "", Context())
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": work.agent,
            "gen_ai.conversation.id": work.conversation_id,
            "vaala.session.id": work.session_id,
            "vaala.turn.id": work.turn_id,
        }
        with self._span(f"invoke_agent {work.agent}", above, attributes) as (traced, context):
            self._by_turn[work.turn_id] = self._by_session[work.session_id] = context
            try:
                yield traced
            except BaseException as error:
                traced.broke(error)
                raise
            finally:
                del self._by_turn[work.turn_id]
                self._by_session.pop(work.session_id, None)
                facts = {"vaala.state": traced.state, "gen_ai.agent.name": work.agent}
                self._turns.add(1, facts)

    @contextmanager
    def model_call(self, work: ModelWork) -> Generator[TracedWork]:
        facts = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": work.provider,
            "gen_ai.request.model": work.model,
        }
        attributes: dict[str, str | int] = {
            **facts,
            "vaala.step": work.step,
            "vaala.attempt": work.attempt,
        }
        began = time.perf_counter()
        name = f"chat {work.model}"
        with self._span(name, None, attributes, SpanKind.CLIENT) as (traced, _):
            try:
                yield traced
            except BaseException as error:
                traced.broke(error)
                raise
            finally:
                self._model_s.record(time.perf_counter() - began, facts)
                if traced.usage is not None:
                    self._count(*traced.usage)

    @contextmanager
    def tool_call(self, work: ToolWork) -> Generator[TracedWork]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": work.tool,
            "gen_ai.tool.call.id": work.call_id,
        }
        with self._span(f"execute_tool {work.tool}", None, attributes) as (traced, _):
            try:
                yield traced
            except BaseException as error:
                traced.broke(error)
                raise
            finally:
                facts = {"vaala.state": traced.state, "gen_ai.tool.name": work.tool}
                self._calls.add(1, facts)

    @contextmanager
    def append(self, session_id: str, entries: int) -> Generator[Work]:
        """Outside of a turn it makes no span: it would be a trace of its own."""
        began = time.perf_counter()
        above = self._by_session.get(session_id)
        try:
            if above is None:
                yield Work()
                return
            with self._span("append", above, {"vaala.entries": entries}) as (traced, _):
                try:
                    yield traced
                except BaseException as error:
                    traced.broke(error)
                    raise
        finally:
            self._append_s.record(time.perf_counter() - began)

    @contextmanager
    def gauges(self, gauges: Mapping[Gauge, Callable[[], int]]) -> Generator[None]:
        self._gauges.update(gauges)
        try:
            yield
        finally:
            for gauge in gauges:
                self._gauges.pop(gauge, None)

    def trace_id(self) -> str | None:
        found = trace.get_current_span().get_span_context()
        return trace.format_trace_id(found.trace_id) if found.is_valid else None

    @contextmanager
    def _span(
        self,
        name: str,
        above: Context | None,
        attributes: Mapping[str, str | int],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Generator[tuple[TracedWork, Context]]:
        """Make a span that is the current one of this task; ``above`` None: below the current."""
        span = self._tracer.start_span(name, above, kind, attributes)
        context = trace.set_span_in_context(span, above)
        token = contexts.attach(context)
        try:
            yield TracedWork(span), context
        finally:
            contexts.detach(token)
            span.end()

    def _count(self, model: str, usage: Usage) -> None:
        for name in usage.__struct_fields__:
            if count := getattr(usage, name):
                facts = {"gen_ai.request.model": model, "gen_ai.token.type": name}
                self._tokens.add(count, facts)

    def _reader(self, gauge: Gauge) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_: CallbackOptions) -> Iterable[Observation]:
            if (count := self._gauges.get(gauge)) is not None:
                yield Observation(count())

        return read


def _kind(error: BaseException) -> str:
    return type(error).__name__
