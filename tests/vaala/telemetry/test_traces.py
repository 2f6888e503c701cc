"""Spans and metrics of what the runtime tells, gathered in memory by the SDK's own exporters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import trio
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from vaala.observer import ModelWork, Observer, ToolWork, TurnWork
from vaala.telemetry.export import exporters_to
from vaala.telemetry.settings import TelemetrySettings
from vaala.telemetry.traces import open_observer, wanted
from vaala_protocol.settings import Usage

TURN = TurnWork("c-1", "s-1", "t-1", "default")
MODEL = ModelWork("team", "team/large", 1)
TOOL = ToolWork("call-1", "read_file")


class Seen:
    """An observer, and what came of what it was told."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()
        self._exporters = exporters_to(SimpleSpanProcessor(self._spans), self._metrics, {})
        self.observer = self._exporters.observer

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._spans.get_finished_spans()}

    def metric(self, name: str) -> list[tuple[Mapping[str, Any], Any]]:
        """Return the points of a metric: attributes, and a value or a count."""
        data = self._metrics.get_metrics_data()
        points = [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return [(dict(one.attributes or {}), _number(one)) for one in points]

    def close(self) -> None:
        self._exporters.close()


def _number(point: Any) -> Any:
    return point.value if hasattr(point, "value") else point.count


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    yield seen
    seen.close()


def _parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    number: int = span.context.span_id
    return number


async def test_a_turn_holds_its_calls_and_appends(seen: Seen) -> None:
    observer = seen.observer

    async def call() -> None:
        with observer.tool_call(TOOL) as work:
            await trio.lowlevel.checkpoint()
            work.ended("done")

    with observer.turn(TURN) as turn:
        with observer.model_call(MODEL) as work:
            work.used("team/large", Usage(input=10, cache_read=5, output=3, reasoning=2))
            work.ended("completed")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
        with observer.append("s-1", 3):
            pass
        turn.ended("completed")
    spans = seen.spans()
    top = spans["invoke_agent default"]
    below = [spans[name] for name in ("chat team/large", "execute_tool read_file", "append")]
    assert _parent(top) is None
    assert {_parent(span) for span in below} == {_id(top)}
    assert dict(spans["chat team/large"].attributes or {}) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "team",
        "gen_ai.request.model": "team/large", "vaala.step": 1, "vaala.attempt": 1,
        "gen_ai.usage.input_tokens": 15, "gen_ai.usage.output_tokens": 5,
        "vaala.state": "completed",
    }  # fmt: skip
    assert dict(spans["append"].attributes or {}) == {"vaala.entries": 3}


async def test_an_append_of_another_task_belongs_to_the_turn_of_its_session(seen: Seen) -> None:
    writing = trio.Event()

    async def write() -> None:
        await writing.wait()
        with seen.observer.append("s-1", 1):
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        with seen.observer.turn(TURN):
            writing.set()
            await trio.testing.wait_all_tasks_blocked()
    spans = seen.spans()
    assert _parent(spans["append"]) == _id(spans["invoke_agent default"])


def test_an_append_outside_of_a_turn_is_timed_and_no_trace(seen: Seen) -> None:
    with seen.observer.append("s-1", 1):
        pass
    assert seen.spans() == {}
    assert seen.metric("vaala.append.duration") == [({}, 1)]


def test_a_turn_of_a_sub_agent_belongs_to_the_turn_that_spawned_it(seen: Seen) -> None:
    child = TurnWork("c-1", "s-2", "t-2", "helper", parent_turn_id="t-1")
    with seen.observer.turn(TURN), seen.observer.tool_call(TOOL), seen.observer.turn(child):
        pass
    spans = seen.spans()
    assert _parent(spans["invoke_agent helper"]) == _id(spans["invoke_agent default"])


def test_a_turn_does_not_belong_to_whatever_its_task_was_started_in(seen: Seen) -> None:
    with seen.observer.turn(TURN), seen.observer.turn(TurnWork("c-2", "s-2", "t-2", "helper")):
        pass
    assert _parent(seen.spans()["invoke_agent helper"]) is None


async def test_a_cancel_is_no_error_and_an_error_tells_its_kind_alone(seen: Seen) -> None:
    with trio.CancelScope() as scope, seen.observer.turn(TURN), seen.observer.tool_call(TOOL):
        scope.cancel()
        await trio.lowlevel.checkpoint()
    with pytest.raises(ValueError, match="secret"), seen.observer.model_call(MODEL):
        raise ValueError("secret text")
    spans = seen.spans()
    for name in ("invoke_agent default", "execute_tool read_file"):
        assert (spans[name].attributes or {})["vaala.state"] == "cancelled"
        assert spans[name].status.is_unset
    failed = spans["chat team/large"]
    assert (failed.attributes or {})["error.type"] == "ValueError"
    assert not failed.status.is_ok
    assert "secret" not in failed.to_json()


def test_what_is_counted(seen: Seen) -> None:
    for state in ("completed", "completed", "failed"):
        with seen.observer.turn(TURN) as turn:
            with seen.observer.model_call(MODEL) as work:
                work.used("team/large", Usage(input=10, output=3))
            with seen.observer.tool_call(TOOL) as call:
                call.ended("done" if state == "completed" else "error", "denied")
            turn.ended(state)
    agent, model = {"gen_ai.agent.name": "default"}, {"gen_ai.request.model": "team/large"}
    assert sorted(seen.metric("vaala.turns"), key=str) == [
        ({"vaala.state": "completed", **agent}, 2), ({"vaala.state": "failed", **agent}, 1),
    ]  # fmt: skip
    assert sorted(seen.metric("vaala.tokens"), key=str) == [
        ({**model, "gen_ai.token.type": "input"}, 30),
        ({**model, "gen_ai.token.type": "output"}, 9),
    ]
    tool = {"gen_ai.tool.name": "read_file"}
    assert sorted(seen.metric("vaala.tool.calls"), key=str) == [
        ({"vaala.state": "done", **tool}, 2), ({"vaala.state": "error", **tool}, 1),
    ]  # fmt: skip
    assert [count for _, count in seen.metric("gen_ai.client.operation.duration")] == [3]


def test_gauges_are_read_while_they_are_held(seen: Seen) -> None:
    with seen.observer.gauges({"conversations": lambda: 3, "clients": lambda: 2}):
        assert seen.metric("vaala.conversations") == [({}, 3)]
        assert seen.metric("vaala.clients") == [({}, 2)]
    assert seen.metric("vaala.clients") == []


def test_the_trace_of_a_task_is_known_to_its_log(seen: Seen) -> None:
    assert seen.observer.trace_id() is None
    with seen.observer.turn(TURN):
        trace = seen.observer.trace_id()
    assert trace is not None
    context = seen.spans()["invoke_agent default"].context
    assert context is not None
    assert int(trace, 16) == context.trace_id


@pytest.mark.parametrize(
    ("enabled", "environ", "result"),
    [
        (None, {}, False),
        (True, {}, True),
        (False, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, True),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, True),
        (True, {"OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_when_anything_is_sent(enabled: bool | None, environ: dict[str, str], result: bool) -> None:
    assert wanted(TelemetrySettings(enabled=enabled), environ) is result


async def test_by_default_nobody_is_told() -> None:
    async with open_observer(TelemetrySettings(), {}) as observer:
        assert type(observer) is Observer
        with observer.turn(TURN) as turn, observer.append("s-1", 1), observer.gauges({}):
            turn.ended("completed")
            turn.used("m", Usage())
        assert observer.trace_id() is None


def test_without_telemetry_its_libraries_are_not_imported() -> None:
    code = (
        "import sys, vaala.runtime, vaala.telemetry.traces, vaala.telemetry.logs, vaala.config\n"
        "sys.exit(str([name for name in sys.modules if 'opentelemetry' in name] or 0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "0\n"


async def test_spans_and_metrics_are_sent_to_the_collector_at_the_end() -> None:
    paths: list[str] = []
    bodies: list[bytes] = []

    async def collector(stream: trio.SocketStream) -> None:
        async with stream:
            while request := await _request(stream):
                head, body = request
                paths.append(head.split()[1])
                bodies.append(body)
                await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(_serve, collector)
        port = listeners[0].socket.getsockname()[1]
        settings = TelemetrySettings(enabled=True, endpoint=f"http://127.0.0.1:{port}/")
        async with open_observer(settings, {"OTEL_SERVICE_NAME": "mine"}) as observer:
            with observer.turn(TURN) as turn:
                turn.ended("completed")
        nursery.cancel_scope.cancel()
    assert sorted(paths) == ["/v1/metrics", "/v1/traces"]
    assert all(b"mine" in body for body in bodies)
    assert any(b"invoke_agent default" in body for body in bodies)


async def _serve(handler: Any, *, task_status: trio.TaskStatus[Any]) -> None:
    await trio.serve_tcp(handler, 0, host="127.0.0.1", task_status=task_status)


async def _request(stream: trio.SocketStream) -> tuple[str, bytes] | None:
    """Read one request with a Content-Length, its body unpacked."""
    import gzip

    data = b""
    while b"\r\n\r\n" not in data:
        piece = await stream.receive_some()
        if not piece:
            return None
        data += piece
    raw, _, body = data.partition(b"\r\n\r\n")
    head = raw.decode().lower()
    length = int(head.split("content-length: ")[1].split()[0])
    while len(body) < length:
        body += await stream.receive_some()
    return raw.decode(), gzip.decompress(body) if "content-encoding: gzip" in head else body
