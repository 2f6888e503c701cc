"""One command inside the supervisor: its line to the runtime, its leader, its tree."""

from __future__ import annotations

import os
import signal
import time
from _socket import socket  # the module `socket` costs 8 ms more, for what is not used here

from . import tree
from .wire import EXITED, GRACE_SECONDS, KILL_SECONDS, RECORD, Request


class Command:
    """The leader stays a zombie until its tree has ended, so its pid, which is also the number
    of its group and session, cannot come to mean another process while it may be signalled.
    """

    __slots__ = (
        "_killed_at",
        "_known",
        "_reaped",
        "_termed_at",
        "buffer",
        "descriptors",
        "end_wanted",
        "exited",
        "line",
        "pid",
        "request",
        "started",
    )

    def __init__(self, line: socket, descriptors: list[int]) -> None:
        self.line = line
        self.descriptors = descriptors
        self.buffer = bytearray()
        self.request: Request | None = None
        self.pid = 0
        self.started = False
        self.exited = False
        self.end_wanted = False
        self._reaped = False
        self._termed_at: float | None = None
        self._killed_at: float | None = None
        self._known: set[tuple[int, int]] = set()

    def tell(self, kind: bytes, first: int, second: int) -> None:
        """Send a record; the runtime may be gone."""
        try:
            self.line.send(RECORD.pack(kind, first, second))
        except OSError:
            self.end_wanted = True

    def close(self) -> None:
        """Close the line: the runtime reads that nothing is left."""
        self.line.close()
        self.close_descriptors()

    def close_descriptors(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def note_exit(self) -> None:
        """Tell the runtime once when the leader has exited, and leave it unreaped."""
        if self.exited or (code := self._exit_code()) is None:
            return
        self.exited = True
        if code >= 0:
            self.tell(EXITED, code, 0)
        else:
            self.tell(EXITED, -1, -code)

    def _exit_code(self) -> int | None:
        """Return the exit code, or minus the signal, or None while the leader runs."""
        if hasattr(os, "waitid"):
            info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if info is None:
                return None
            return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status
        pid, status = os.waitpid(self.pid, os.WNOHANG)  # macOS before Python 3.13
        self._reaped = pid == self.pid
        return os.waitstatus_to_exitcode(status) if self._reaped else None

    def signal_group(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except OSError:
            return

    def ended(self, leaders: set[int]) -> bool:
        """Bring the end of the tree one step further; true when nothing is left to wait for.

        ``leaders`` are the pids of all commands. When this one is alone, orphans that bear no
        sign of anyone are its own.
        """
        now = time.monotonic()
        members = self._members(leaders)
        if members:
            if self._termed_at is None:
                self._termed_at = now
                self._signal(members, signal.SIGTERM)
                self._signal(members, signal.SIGCONT)
                return False
            if now < self._termed_at + GRACE_SECONDS:
                return False
            if self._killed_at is None:
                self._killed_at = now
            self._signal(members, signal.SIGKILL)
            if now < self._killed_at + KILL_SECONDS:
                return False
        self.note_exit()
        if self.exited and not self._reaped:
            os.waitpid(self.pid, 0)
        return True

    def _signal(self, members: dict[int, tree.Row], number: int) -> None:
        self.signal_group(number)
        for pid, entry in members.items():
            if entry.group != self.pid:
                tree.send(pid, entry.start, number)

    def _members(self, leaders: set[int]) -> dict[int, tree.Row]:
        self.note_exit()
        if self.exited and tree.LINUX and leaders.issuperset(tree.children()):
            return {}  # the usual case, without a look at every process: nobody has an orphan
        rows = tree.table()
        members = tree.descendants(self._roots(rows, leaders), rows)
        self._known.update((pid, entry.start) for pid, entry in members.items())
        return members

    def _roots(self, rows: dict[int, tree.Row], leaders: set[int]) -> list[int]:
        me = os.getpid()
        alone = len(leaders) == 1
        marker = self.request.marker() if self.request else b""
        roots = [self.pid]
        for pid, entry in rows.items():
            ours = self.pid in (entry.group, entry.session) or (pid, entry.start) in self._known
            orphan = entry.parent == me and pid not in leaders
            if ours or (orphan and (alone or tree.has_marker(pid, marker))):
                roots.append(pid)
        return roots
