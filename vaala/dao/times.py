from __future__ import annotations

import time


def now_ms() -> int:
    """Return wall-clock time in milliseconds since the epoch; order never depends on it."""
    return time.time_ns() // 1_000_000
