"""Which processes belong to a command, and signals that cannot hit a stranger.

A member is whoever descends from the command's leader, shares its session or process group, or
carries its marker in the environment. On Linux the supervisor is a subreaper: a process whose
parent died becomes its child and not init's, so even one that took a new session and an empty
environment stays in sight. Elsewhere `ps` shows descendants and groups, and such a process
escapes.
"""

from __future__ import annotations

import os
import signal

LINUX = os.path.isdir("/proc/self/task")


class Row:
    """One process. ``start`` tells two processes with the same pid apart (0 where unknown)."""

    __slots__ = ("group", "parent", "session", "start", "state")

    def __init__(self, state: str, parent: int, group: int, session: int, start: int) -> None:
        self.state = state
        self.parent = parent
        self.group = group
        self.session = session
        self.start = start


def read_bytes(path: str) -> bytes:
    """Return a small /proc file; empty when the process is gone or not ours to look at."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces: list[bytes] = []
        while piece := os.read(fd, 1 << 16):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return b""
    finally:
        os.close(fd)


def row(pid: int) -> Row | None:
    """Return one process from /proc, see proc_pid_stat(5); the name may contain anything."""
    fields = read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    parent, group, session = map(int, fields[1:4])
    state, threads = fields[0].decode(), int(fields[17])
    if state == "Z" and threads > 1:
        state = "S"  # only the first thread has ended
    return Row(state, parent, group, session, int(fields[19]))


def table() -> dict[int, Row]:
    """Return every process: about 12 us each on Linux."""
    if not LINUX:
        return _table_of_ps()
    rows: dict[int, Row] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and (found := row(int(name))) is not None:
            rows[int(name)] = found
    return rows


def _table_of_ps() -> dict[int, Row]:
    import subprocess

    text = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,pgid=,stat="], capture_output=True, check=False
    ).stdout
    rows: dict[int, Row] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 4:
            pid, parent, group = map(int, fields[:3])
            rows[pid] = Row(fields[3][:1].decode(), parent, group, 0, 0)
    return rows


def children() -> list[int]:
    """Return the pids of the calling process's own children, dead ones too."""
    me = os.getpid()
    listed = f"/proc/self/task/{me}/children"
    if os.path.exists(listed):
        return [int(pid) for pid in read_bytes(listed).split()]
    return [pid for pid, entry in table().items() if entry.parent == me]


class Snapshot:
    """What the system says, looked at once and only when asked for: many commands may end at once,
    and reading every process for each of them would take the longer the more there are.
    """

    def __init__(self) -> None:
        self._children: list[int] | None = None
        self._rows: dict[int, Row] | None = None
        self._environments: dict[int, list[bytes]] = {}

    def children(self) -> list[int]:
        if self._children is None:
            self._children = children()
        return self._children

    def rows(self) -> dict[int, Row]:
        if self._rows is None:
            self._rows = table()
        return self._rows

    def has_entry(self, pid: int, entry: bytes) -> bool:
        """Whether the environment that a process started with contains an entry."""
        if pid not in self._environments:
            self._environments[pid] = read_bytes(f"/proc/{pid}/environ").split(b"\0")
        return entry in self._environments[pid]


def descendants(roots: list[int], rows: dict[int, Row]) -> dict[int, Row]:
    """Return ``roots`` and all below them that live."""
    below: dict[int, list[int]] = {}
    for pid, entry in rows.items():
        below.setdefault(entry.parent, []).append(pid)
    found: dict[int, Row] = {}
    todo = [pid for pid in roots if pid in rows]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found[pid] = rows[pid]
            todo.extend(below.get(pid, ()))
    return {pid: entry for pid, entry in found.items() if entry.state not in "ZX"}


def send(pid: int, start: int, number: int) -> None:
    """Signal one process if it is still the one that had ``start``; nothing when it is gone.

    The pidfd pins the process first, so a pid that is used again cannot be hit.
    """
    try:
        if not (LINUX and hasattr(os, "pidfd_open")):
            os.kill(pid, number)
            return
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        found = row(pid)
        if found is not None and found.start == start:
            signal.pidfd_send_signal(fd, number)
    except OSError:
        return
    finally:
        os.close(fd)
