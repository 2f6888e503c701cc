"""Whether the libraries of the extra `telemetry` are there."""

from __future__ import annotations

import importlib.util


def installed() -> bool:
    """Tell whether the libraries are there, without importing them."""
    try:
        return importlib.util.find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:  # not even the package above it is there
        return False
