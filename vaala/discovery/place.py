"""Where the record of a server lies, and what stands beside it.

For the data directory of the user they are in the state directory, so that they are not copied
with the data; for any other one in that directory itself.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from vaala.discovery import limits
from vaala.paths import data_directory as data_directory_of
from vaala.paths import state_directory
from vaala_protocol.base import Malformed, decode


class Place(Struct, frozen=True):
    """The files of the server of one data directory."""

    data: Path
    directory: Path

    @property
    def record(self) -> Path:
        return self.directory / "runtime-server.yaml"

    @property
    def owner_lock(self) -> Path:
        """The kernel lock of the one process that owns the data; `vaala.dao` holds it."""
        return self.data / "runtime.lock"

    @property
    def start_lock(self) -> Path:
        """Held by the client that starts the server, so that ten at once start one."""
        return self.directory / "runtime-server.start"

    @property
    def output(self) -> Path:
        """What a server started by a client prints: a traceback before its log is open."""
        return self.directory / "runtime-server.out"


def place_of(data: Path, environ: Mapping[str, str]) -> Place:
    """Return the place for a data directory; ``environ`` tells which one is the user's."""
    usual = {name: value for name, value in environ.items() if name != "VAALA_DATA_DIR"}
    if same_directory(data, data_directory_of(usual)):
        return Place(data, state_directory(environ))
    return Place(data, data)


def is_owned(lock: Path) -> bool:
    """Tell whether a process holds the lock of a data directory now. Makes nothing; blocks.

    A lock that cannot be opened counts as free: whoever tries to own the data is told why.
    """
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def owner_pid(lock: Path) -> int | None:
    """Return the process that the lock of a data directory names; None: it names none. Blocks.

    It is whoever owned the data last: ask `is_owned` whether somebody does.
    """
    try:
        with lock.open("rb") as file:
            said = decode(file.read(limits.LOCK_BYTES_MAX))
    except (OSError, Malformed):
        return None
    match said:
        case {"pid": int(pid)}:
            return pid
        case _:
            return None


def same_directory(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to the same directory, which need not exist."""
    return one == other or one.resolve() == other.resolve()
