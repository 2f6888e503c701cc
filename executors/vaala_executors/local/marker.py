"""The mark in every command's environment: which runtime started it, and is that one alive.

``<pid namespace>.<pid>.<start time>.<number>``. The namespace keeps a runtime on the host away from
those in containers, whose pids mean nothing there; the start time tells a dead runtime from a
stranger that has its pid now.
"""

from __future__ import annotations

import os

from vaala_executors.local.supervisor import tree
from vaala_executors.local.supervisor.wire import MARKER

NAME = MARKER.decode()


def runtime_marker() -> str:
    """Return this runtime's part of the mark; a command's number follows it.

    Two executors in one process have different ones.
    """
    pid = os.getpid()
    found = tree.row(pid)
    start = found.start if found is not None else 0
    return f"{_namespace()}.{pid}.{start}.{os.urandom(4).hex()}"


def runtime_is_gone(marker: str) -> bool:
    """Whether the runtime of a mark lived in this pid namespace and lives no more."""
    fields = marker.split(".")
    if len(fields) != 5 or fields[0] != _namespace() or not fields[1].isdecimal():
        return False
    found = tree.row(int(fields[1]))
    return found is None or str(found.start) != fields[2]


def marker_of(pid: int) -> str | None:
    """Return the mark of a process, or None when it bears none or is not ours to look at."""
    prefix = MARKER + b"="
    for entry in tree.read_bytes(f"/proc/{pid}/environ").split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode("ascii", "replace")
    return None


def _namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return "0"
