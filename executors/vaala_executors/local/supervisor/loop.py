"""The supervisor: one small process for each runtime, parent of all its commands.

Why a process of its own, and not the runtime itself:

- It outlives a runtime that is killed with -9 and sees that at once (its sockets close).
- It may be a subreaper and may reap every child it has. In the runtime that would catch the
  children of whatever program embeds it.
- It has one thread and little memory, so fork is cheap and what happens between fork and exec
  (session, controlling terminal, directory) is plain code without `preexec_fn`.
- It inherits none of the runtime's descriptors, so no lock leaks into a command.

It holds no state that matters: if it is killed, the runtime ends the commands by their marker.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from _socket import CMSG_SPACE, MSG_CTRUNC, SCM_RIGHTS, SOL_SOCKET, socket
from collections.abc import Callable

from . import tree
from .child import FAILURE, become
from .command import Command
from .wire import FAILED, KILL_SECONDS, STAGE_FORK, STARTED, decode

TICK_MS = 50
"""While a tree is ending: members that are nobody's child send no signal when they go."""
DESCRIPTORS_MAX = 3
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
SIGNALS = {
    ord("I"): signal.SIGINT,
    ord("T"): signal.SIGTERM,
    ord("K"): signal.SIGKILL,
    ord("H"): signal.SIGHUP,
}


OUTLIVED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGPIPE,
    signal.SIGXFSZ,
)
"""Not ours to obey: the runtime decides when to stop, and a service manager that tells everyone
to stop must leave it the time. They have a handler that does nothing, since exec keeps "ignore" and
puts a handler back to the default, so that a command starts with none of it.
"""


class Supervisor:
    """Serves the runtime at the other end of ``main`` until it closes it and all has ended."""

    def __init__(self, main: socket) -> None:
        self._main: socket | None = main
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], None]] = {}
        self._commands: dict[int, Command] = {}
        """By the descriptor of their line."""
        self._wake = self._wake_on_children()
        self._watch(main.fileno(), self._accept)

    def run(self) -> None:
        while self._main is not None or self._commands:
            ending = any(command.end_wanted for command in self._commands.values())
            for fd, _ in self._poll.poll(TICK_MS if ending else None):
                if fd in self._handlers:
                    self._handlers[fd]()
            self._end_what_is_to_end()
        self._end_strays()

    def _watch(self, fd: int, handler: Callable[[], None]) -> None:
        self._handlers[fd] = handler
        self._poll.register(fd, select.POLLIN)

    def _unwatch(self, fd: int) -> None:
        del self._handlers[fd]
        self._poll.unregister(fd)

    def _wake_on_children(self) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        self._watch(reader, self._note_children)
        return reader

    def _accept(self) -> None:
        assert self._main is not None
        data, ancillary, flags, _ = self._main.recvmsg(1, CMSG_SPACE(4 * DESCRIPTORS_MAX))
        if not data:
            self._unwatch(self._main.fileno())
            self._main.close()
            self._main = None
            return
        received = _descriptors(ancillary)
        if flags & MSG_CTRUNC or len(received) < 2:
            # No descriptor is free here. The runtime reads end of file on the command's line.
            for descriptor in received:
                os.close(descriptor)
            return
        line = socket(fileno=received[0])
        line.setblocking(False)
        command = Command(line, received[1:])
        self._commands[line.fileno()] = command
        self._watch(line.fileno(), lambda: self._hear(command))

    def _hear(self, command: Command) -> None:
        try:
            data = command.line.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._unwatch(command.line.fileno())
            command.end_wanted = True
        elif command.request is None:
            self._collect(command, data)
        else:
            self._signal(command, data)

    def _collect(self, command: Command, data: bytes) -> None:
        command.buffer += data
        command.request = decode(command.buffer)
        if command.request is not None:
            command.buffer.clear()
            self._start(command)

    def _signal(self, command: Command, names: bytes) -> None:
        for name in names:
            if command.pid:
                command.signal_group(SIGNALS[name])

    def _start(self, command: Command) -> None:
        assert command.request is not None
        output, *rest = command.descriptors
        pipe: tuple[int, ...] = ()
        try:
            status, status_writer = pipe = os.pipe()
            pid = os.fork()
        except OSError as error:  # a limit of processes or of descriptors
            for descriptor in pipe:
                os.close(descriptor)
            self._refuse(command, STAGE_FORK, error.errno or 0)
            return
        if pid == 0:
            become(command.request, output, rest[0] if rest else self._null, status_writer)
        command.pid = pid
        os.close(status_writer)
        command.close_descriptors()
        self._watch(status, lambda: self._started(command, status))

    def _started(self, command: Command, status: int) -> None:
        said = os.read(status, FAILURE.size)
        self._unwatch(status)
        os.close(status)
        if said:
            os.waitpid(command.pid, 0)
            self._refuse(command, *FAILURE.unpack(said))
            return
        command.started = True
        command.tell(STARTED, command.pid, 0)
        command.note_exit()

    def _refuse(self, command: Command, stage: int, errno: int) -> None:
        command.tell(FAILED, stage, errno)
        self._forget(command)

    def _forget(self, command: Command) -> None:
        fd = command.line.fileno()
        del self._commands[fd]
        if fd in self._handlers:
            self._unwatch(fd)
        command.close()

    def _note_children(self) -> None:
        while True:
            try:
                if len(os.read(self._wake, 4096)) < 4096:
                    break
            except BlockingIOError:
                break
        self._note_exits()
        self._reap_orphans()

    def _reap_orphans(self) -> None:
        leaders = self._leaders()
        for pid in tree.children():
            if pid not in leaders:
                _reap(pid)

    def _note_exits(self) -> None:
        for command in self._commands.values():
            if command.started:
                command.note_exit()

    def _leaders(self) -> set[int]:
        return {command.pid for command in self._commands.values() if command.pid}

    def _end_what_is_to_end(self) -> None:
        self._note_exits()
        seen = tree.Snapshot()
        for command in list(self._commands.values()):
            if not command.end_wanted:
                continue
            if command.pid == 0 or (command.started and command.ended(self._leaders(), seen)):
                self._reap_orphans()  # one that has just died would be seen behind the closed line
                self._forget(command)

    def _end_strays(self) -> None:
        """End what no command could be named for; on Linux all of it is among our descendants."""
        me = os.getpid()
        deadline = time.monotonic() + KILL_SECONDS
        while (pids := tree.children()) and time.monotonic() < deadline:
            rows = tree.table()
            strays = tree.descendants(pids, rows)
            strays.pop(me, None)
            for pid, entry in strays.items():
                tree.send(pid, entry.start, signal.SIGKILL)
            for pid in pids:
                _reap(pid)
            self._poll.poll(TICK_MS)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    received: list[int] = []
    for level, kind, payload in ancillary:
        if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
            for at in range(0, len(payload) // 4 * 4, 4):
                received.append(int.from_bytes(payload[at : at + 4], sys.byteorder))
    for descriptor in received:
        os.set_inheritable(descriptor, False)
    return received


def _nothing(_number: int, _frame: object) -> None:
    pass


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def main() -> None:
    """Run on the socket that is standard input.

    A fault of our own is written there too, for the runtime's log.
    """
    for number in OUTLIVED:
        signal.signal(number, _nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    runtime = socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        Supervisor(runtime).run()
    except Exception:
        import traceback

        runtime.send(traceback.format_exc().encode()[-8192:])
        raise
