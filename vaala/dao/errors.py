"""What can go wrong between the runtime and its data, beyond the errors of storage.

Storage errors (`vaala_storage.errors`) pass through appends and updates as they are: the session
decides what to do about a full disk. What a client may be told is a `Refused`.

StoreLocked           another runtime owns the data directory
Refused
+-- NotFound          no such conversation or session (`vaala_protocol.errors`)
+-- Busy              the conversation is open (`vaala_protocol.errors`)
+-- NewerFormat       a newer vaala wrote it: it can be read, not written
+-- ReadOnlyStore     this store was opened for reading beside a running runtime
+-- IndexUnavailable  lists and search have no index now (an `Unreadable`, and a storage error)
+-- BadArchive        what is imported is not an archive of ours, or is over a limit
"""

from __future__ import annotations

from pathlib import Path

from vaala_protocol.errors import Refused, Unreadable
from vaala_storage.errors import StorageFailed


class StoreLocked(Exception):
    """The data directory has an owner; the fields are what it wrote about itself, a hint."""

    def __init__(
        self, path: Path, *, pid: int | None, since: int | None, command: str | None
    ) -> None:
        who = f"process {pid}" if pid is not None else "another process"
        if command:
            who = f"{who} ({command})"
        super().__init__(
            f"{path} is in use by {who}; use that one, stop it, or choose another --data-dir"
        )
        self.path = path
        self.pid = pid
        self.since = since
        self.command = command


class NewerFormat(Refused):
    code = "newer_format"


class ReadOnlyStore(Refused):
    code = "read_only"


class IndexUnavailable(StorageFailed, Unreadable):
    """Only what needs the index fails: conversations are opened, run and written without it."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "the index is unavailable, so conversations cannot be listed or searched now; name "
            f"one by its whole id. It is made anew as soon as it can be: {reason}"
        )


class BadArchive(Refused):
    code = "bad_archive"
