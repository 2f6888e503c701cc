"""Sends spans and metrics to an OTLP collector over HTTP, from threads of the SDK."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from vaala.telemetry.limits import EXPORT_PERIOD_S, EXPORT_S, SPAN_BATCH_MAX, SPANS_WAITING_MAX
from vaala.telemetry.observer import TracingObserver
from vaala.telemetry.settings import TelemetrySettings
from vaala.version import VERSION


class Exporters(Struct, frozen=True):
    """The observer, and what sends what it makes."""

    observer: TracingObserver
    spans: TracerProvider
    metrics: MeterProvider

    def close(self) -> None:
        """Send what is left and end the threads. Blocks."""
        self.spans.shutdown()
        self.metrics.shutdown(EXPORT_S * 1000)


def open_exporters(settings: TelemetrySettings, environ: Mapping[str, str]) -> Exporters:
    """Begin to send what ``settings`` ask for. What they leave open the variables say."""
    headers = {name: value.reveal() for name, value in settings.headers.items()} or None
    processor: SpanProcessor | None = None
    reader: MetricReader | None = None
    if settings.traces:
        processor = BatchSpanProcessor(
            OTLPSpanExporter(
                endpoint=_endpoint(settings, "traces"), headers=headers, timeout=EXPORT_S
            ),
            max_queue_size=SPANS_WAITING_MAX,
            schedule_delay_millis=EXPORT_PERIOD_S * 1000,
            max_export_batch_size=SPAN_BATCH_MAX,
        )
    if settings.metrics:
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(
                endpoint=_endpoint(settings, "metrics"), headers=headers, timeout=EXPORT_S
            ),
            export_interval_millis=settings.metrics_period_s * 1000,
            export_timeout_millis=EXPORT_S * 1000,
        )
    return exporters_to(processor, reader, environ)


def exporters_to(
    processor: SpanProcessor | None, reader: MetricReader | None, environ: Mapping[str, str]
) -> Exporters:
    """Give spans to ``processor`` and metrics to ``reader``, where there is one."""
    resource = Resource.create(
        {
            "service.name": environ.get("OTEL_SERVICE_NAME") or "vaala",
            "service.version": VERSION,
        }
    )
    # Nothing is left to the exit of the interpreter, which a silent collector would hold up.
    spans = TracerProvider(resource=resource, shutdown_on_exit=False)
    if processor is not None:
        spans.add_span_processor(processor)
    metrics = MeterProvider(
        [] if reader is None else [reader], resource=resource, shutdown_on_exit=False
    )
    observer = TracingObserver(spans.get_tracer("vaala", VERSION), metrics.get_meter("vaala"))
    return Exporters(observer, spans, metrics)


def _endpoint(settings: TelemetrySettings, signal: str) -> str | None:
    if settings.endpoint is None:
        return None
    return f"{settings.endpoint.rstrip('/')}/v1/{signal}"
