"""Moving a damaged database out of the way, so that a new one can take its place."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path


def move_aside(path: Path) -> Path:
    """Rename a database that nobody has open to ``<name>.corrupt-<UTC time>``; return that.

    Its write-ahead log goes first and keeps its tie to the moved file: a log left behind would be
    played into the new database. Interrupted in between, the database is still there to be moved.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    target = path.with_name(f"{path.name}.corrupt-{stamp}")
    for suffix in ("-journal", "-shm", "-wal", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(target.with_name(target.name + suffix))
    return target
