"""The version; a module of its own, so that telling it costs nothing."""

from __future__ import annotations

VERSION = "0.1.0"
