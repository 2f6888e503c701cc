"""What telemetry.yaml says, ready for use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from vaala.models.secret import Secret

Level: TypeAlias = Literal["debug", "info", "warning", "error"]


class LogSettings(Struct, frozen=True):
    level: Level = "warning"
    file_bytes_max: int = 4 * 1024 * 1024
    """A file that would grow beyond this is put aside and a new one begun."""
    files_max: int = 5
    """How many files are kept, the current one included."""


class TelemetrySettings(Struct, frozen=True):
    enabled: bool | None = None
    """None: only when a variable of OpenTelemetry names where to send to."""
    traces: bool = True
    metrics: bool = True
    endpoint: str | None = None
    """The base URL of an OTLP collector; None: what the variables of OpenTelemetry say."""
    headers: Mapping[str, Secret] = {}
    """Sent with each export."""
    metrics_period_s: float = 60.0
    logs: LogSettings = LogSettings()
