"""The data directory: what lies where, who may read it, and its id.

runtime.lock      held by the one runtime that owns the directory
id                names this directory, so that one copied elsewhere is told apart
conversations/    a directory for each conversation
trash/            conversations that are being removed
metadata.db       lists and search: a cache
memory.db         long-term memory: no cache
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from msgspec import Struct

_ID_CHARS_MAX = 64


class DataDir(Struct, frozen=True):
    root: Path

    @property
    def lock(self) -> Path:
        return self.root / "runtime.lock"

    @property
    def id_file(self) -> Path:
        return self.root / "id"

    @property
    def conversations(self) -> Path:
        return self.root / "conversations"

    @property
    def trash(self) -> Path:
        return self.root / "trash"

    @property
    def metadata_db(self) -> Path:
        return self.root / "metadata.db"

    def prepare(self) -> None:
        """Make what is missing, for its owner alone whatever the umask; raises ``OSError``."""
        above = [parent for parent in self.root.parents if not parent.exists()]
        for directory in (*reversed(above), self.root, self.conversations, self.trash):
            directory.mkdir(mode=0o700, exist_ok=True)

    def read_id(self) -> str:
        """Return the directory's id, empty when it has none yet."""
        try:
            return self.id_file.read_text("ascii")[:_ID_CHARS_MAX].strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def ensure_id(self) -> str:
        """Return the directory's id, making one when there is none; only under the lock."""
        if found := self.read_id():
            return found
        new = secrets.token_hex(16)
        draft = self.id_file.with_suffix(".new")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, f"{new}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.rename(self.id_file)
        sync_directory(self.root)
        return new


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable; blocks."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
