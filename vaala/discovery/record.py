"""`ServerRecord`: what a server tells the clients of its user about itself, and its file.

The file is a hint and never trusted: whoever reads it goes on to verify the server by the
handshake (`vaala.discovery.handshake`). It is written as JSON, which is YAML.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from msgspec import Struct

from vaala.discovery import limits
from vaala.discovery.place import same_directory
from vaala_protocol.base import Malformed, Value, decode, encode, from_json


class ServerRecord(Value, frozen=True, kw_only=True):
    """Where a server listens, and how its clients prove that they may use it."""

    token: str
    """Made anew for each run of the server: one that leaked with an old file opens nothing."""
    pid: int
    instance: str
    """Names this run of the server."""
    version: str
    data_directory: str
    started_at: int
    """Milliseconds since 1970."""
    host: str | None = None
    """A numeric address; None: it listens on no port."""
    port: int | None = None
    socket: str | None = None
    """Path of the unix socket; None: it has none."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return where it listens, best first, in the form that `vaala.client.connect` takes."""
        found: list[str] = []
        if self.socket is not None:
            found.append(f"unix:{self.socket}")
        if self.host is not None and self.port is not None:
            host = f"[{self.host}]" if ":" in self.host else self.host
            found.append(f"{host}:{self.port}")
        return tuple(found)

    def __repr__(self) -> str:
        """Leave the token out: what is printed ends in logs."""
        return f"<ServerRecord {self.instance} pid {self.pid} at {', '.join(self.addresses)}>"


class NoRecord(Struct, frozen=True):
    """There is no record to go by; ``reason`` is one line for people."""

    reason: str


def write_record(path: Path, record: ServerRecord) -> None:
    """Put a record in place of whatever is there, at once and for its owner alone.

    Makes the directory (0700) when it is missing. The mode does not depend on the umask. Blocks;
    raises ``OSError``, and then leaves the old file as it was.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{record.instance}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.fchmod(handle, 0o600)
            _write_all(handle, encode(record) + b"\n")
        finally:
            os.close(handle)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove_record(path: Path, instance: str) -> bool:
    """Remove the record of this run of a server; another run's stays. Blocks.

    Call it while the data directory is still locked: then no other server writes meanwhile.
    Returns whether there was one; a file that cannot be read or removed counts as none.
    """
    found = _load(path)
    if isinstance(found, NoRecord) or found.instance != instance:
        return False
    with contextlib.suppress(OSError):
        path.unlink()
        return True
    return False


def read_record(path: Path, data_directory: Path) -> ServerRecord | NoRecord:
    """Return the record of the server of a data directory, or why there is none. Blocks.

    Never raises. Refused is what another user owns or can read or write, and what is no file.
    """
    found = _load(path)
    if isinstance(found, NoRecord):
        return found
    if not same_directory(Path(found.data_directory), data_directory):
        return NoRecord(f"{path} is of a server with the data in {found.data_directory}")
    if not found.addresses:
        return NoRecord(f"{path} names no address")
    return found


def _load(path: Path) -> ServerRecord | NoRecord:
    try:
        # Without waiting for a writer: what stands here could be a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return NoRecord(f"there is no {path}")
    except OSError as error:
        return NoRecord(f"could not read {path}: {error.strerror}")
    try:
        if (problem := _distrust(handle)) is not None:
            return NoRecord(f"{path} is not used: {problem}; remove it")
        return from_json(decode(os.read(handle, limits.RECORD_BYTES_MAX + 1)), ServerRecord)
    except Malformed as error:
        return NoRecord(f"{path} is no record of a server: {error}")
    except OSError as error:
        return NoRecord(f"could not read {path}: {error.strerror}")
    finally:
        os.close(handle)


def _distrust(handle: int) -> str | None:
    """Tell why an open file must not be believed."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        return "it is no file"
    if found.st_uid != os.geteuid():
        return f"it belongs to user {found.st_uid}"
    if open_to := stat.S_IMODE(found.st_mode) & 0o077:
        return f"others may use it (mode {stat.S_IMODE(found.st_mode):o}, {open_to:o} too many)"
    if found.st_size > limits.RECORD_BYTES_MAX:
        return f"it has {found.st_size} bytes"
    return None


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
