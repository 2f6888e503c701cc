"""Stores in one SQLite file; importing this loads SQLite (about 10 ms)."""

from vaala_storage.sqlite.aside import move_aside
from vaala_storage.sqlite.connect import Sync
from vaala_storage.sqlite.database import SqliteDatabase, open_sqlite

__all__ = ["SqliteDatabase", "Sync", "move_aside", "open_sqlite"]
