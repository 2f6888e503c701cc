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
        "_asked",
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
        self._asked: set[tuple[int, int]] = set()
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

    def ended(self, leaders: set[int], seen: tree.Snapshot) -> bool:
        """Bring the end of the tree one step further; true when nothing is left to wait for.

        ``leaders`` are the pids of all commands; when this one is alone, orphans that bear no
        sign of anyone are its own. ``seen`` was begun after `note_exit`, so that whom an exited
        leader left is in it.
        """
        now = time.monotonic()
        members = self._members(leaders, seen)
        if members:
            if self._termed_at is None:
                self._termed_at = now
            if now < self._termed_at + GRACE_SECONDS:
                self._ask(members)
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

    def _ask(self, members: dict[int, tree.Row]) -> None:
        """Send TERM once to each, also to those that were born after the first were asked."""
        new = {pid: row for pid, row in members.items() if (pid, row.start) not in self._asked}
        if new:
            self._signal(new, signal.SIGTERM)
            self._signal(new, signal.SIGCONT)
            self._asked.update((pid, row.start) for pid, row in new.items())

    def _signal(self, members: dict[int, tree.Row], number: int) -> None:
        if any(entry.group == self.pid for entry in members.values()):
            self.signal_group(number)
        for pid, entry in members.items():
            if entry.group != self.pid:
                tree.send(pid, entry.start, number)

    def _members(self, leaders: set[int], seen: tree.Snapshot) -> dict[int, tree.Row]:
        if self.exited and tree.LINUX and leaders.issuperset(seen.children()):
            return {}  # the usual case, without a look at every process: nobody has an orphan
        members = tree.descendants(self._roots(leaders, seen), seen.rows())
        self._known.update((pid, entry.start) for pid, entry in members.items())
        return members

    def _roots(self, leaders: set[int], seen: tree.Snapshot) -> list[int]:
        me = os.getpid()
        alone = len(leaders) == 1
        marker = self.request.marker() if self.request else b""
        roots = [self.pid]
        for pid, entry in seen.rows().items():
            ours = self.pid in (entry.group, entry.session) or (pid, entry.start) in self._known
            orphan = entry.parent == me and pid not in leaders
            if ours or (orphan and (alone or seen.has_entry(pid, marker))):
                roots.append(pid)
        return roots
