"""Traces and metrics by OpenTelemetry, for who wants them: its libraries are imported only then.

Spans carry names, numbers and states, in the words of the semantic conventions for generative AI
where there are such; what was said or done with files is never in them.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from vaala.observer import Observer
from vaala.telemetry.installed import installed
from vaala.telemetry.limits import CLOSING_S
from vaala.telemetry.settings import TelemetrySettings

if TYPE_CHECKING:
    from vaala.telemetry.export import Exporters

log = logging.getLogger(__name__)

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


def wanted(settings: TelemetrySettings, environ: Mapping[str, str]) -> bool:
    """Tell whether anything is to be sent: the file decides, and where it is silent a variable."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if settings.enabled is None:
        return any(environ.get(name) for name in _ENDPOINTS)
    return settings.enabled


@asynccontextmanager
async def open_observer(
    settings: TelemetrySettings, environ: Mapping[str, str]
) -> AsyncGenerator[Observer]:
    """Yield who is told what the runtime does; where nothing is to be sent, one who tells nobody.

    Sending is done by threads and its failures are logged; leaving sends what is left, and
    gives it up after `CLOSING_S`.
    """
    if not wanted(settings, environ):
        yield Observer()
        return
    if not installed():
        log.warning("variables ask for telemetry: pip install 'vaala[telemetry]' to send any")
        yield Observer()
        return
    exporters = await trio.to_thread.run_sync(_open, settings, environ)
    try:
        yield exporters.observer
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSING_S):
            await trio.to_thread.run_sync(exporters.close, abandon_on_cancel=True)


def _open(settings: TelemetrySettings, environ: Mapping[str, str]) -> Exporters:
    from vaala.telemetry.export import open_exporters

    return open_exporters(settings, environ)
