"""What the runtime and its supervisor say to each other.

For each command the runtime makes a socket pair and hands one end over, in one message on the
supervisor's standard input that also carries the command's descriptors. From then on that pair
is the command's own line:

- runtime: one request, then one byte for each signal; closing its side ends the whole tree.
- supervisor: `STARTED` or `FAILED`, then `EXITED`; closing its side says that nothing is left.

So a runtime that dies, however it dies, ends its commands: the kernel closes its sockets.
"""

from __future__ import annotations

from struct import Struct

MARKER = b"VAALA_COMMAND_ID"
"""In the environment of every command: how a process that left its session is recognised."""

HEADER = Struct("!IIB")
"""Bytes that follow, number of arguments, flags."""
FLAG_PTY = 1
FLAG_STDIN = 2

RECORD = Struct("!cii")
STARTED = b"S"  # pid, 0
FAILED = b"F"  # stage, errno
EXITED = b"X"  # exit code or -1, signal or 0

STAGE_FORK = 0
STAGE_TERMINAL = 1
STAGE_DIRECTORY = 2
STAGE_PROGRAM = 3

GRACE_SECONDS = 2.0
"""Between TERM and KILL."""
KILL_SECONDS = 1.0
"""Between KILL and giving up on what the kernel does not let go."""


class Request:
    """What to run. A plain class: `dataclasses` costs the supervisor 8 ms of import."""

    __slots__ = ("argv", "cwd", "env", "flags")

    def __init__(self, argv: list[bytes], cwd: bytes, env: list[bytes], flags: int) -> None:
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.flags = flags

    def encode(self) -> bytes:
        """No field may contain a NUL byte: the kernel could not take it either."""
        body = b"\0".join([self.cwd, *self.argv, *self.env])
        return HEADER.pack(len(body), len(self.argv), self.flags) + body

    def marker(self) -> bytes:
        """Return the environment entry that marks this command's processes."""
        prefix = MARKER + b"="
        return next(entry for entry in self.env if entry.startswith(prefix))


def decode(buffer: bytearray) -> Request | None:
    """Return the request in ``buffer``, or None if it is not whole."""
    if len(buffer) < HEADER.size:
        return None
    length, arguments, flags = HEADER.unpack_from(buffer)
    end = HEADER.size + length
    if len(buffer) < end:
        return None
    fields = bytes(buffer[HEADER.size : end]).split(b"\0")
    return Request(fields[1 : 1 + arguments], fields[0], fields[1 + arguments :], flags)
