"""`memory_wires`: a wire inside one process, for tests of what speaks over wires.

Each direction holds a bounded number of bytes, like the buffers of a socket: whoever sends to a
peer that does not read has to wait.
"""

from __future__ import annotations

from collections import deque

import trio

from vaala.server.wire import Wire, WireClosed

BUFFER_BYTES = 256 * 1024
"""About what the two buffers of a loopback socket hold on Linux."""


def memory_wires(buffer_bytes: int = BUFFER_BYTES) -> tuple[Wire, Wire]:
    """Return the two ends of a wire whose directions hold ``buffer_bytes`` each.

    A message that is larger goes through when the direction is empty.
    """
    there, back = _Direction(buffer_bytes), _Direction(buffer_bytes)
    return _MemoryWire(there, back), _MemoryWire(back, there)


class _Direction:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._closed: tuple[int, str] | None = None
        self._changed = trio.Event()

    async def put(self, message: bytes) -> None:
        await trio.lowlevel.checkpoint()
        while self._messages and self._bytes + len(message) > self._limit:
            self._check_open()
            await self._changed.wait()
        self._check_open()
        self._messages.append(message)
        self._bytes += len(message)
        self._notify()

    async def get(self) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self._messages:
            self._check_open()
            await self._changed.wait()
        message = self._messages.popleft()
        self._bytes -= len(message)
        self._notify()
        return message

    def close(self, code: int, reason: str, *, drop: bool) -> None:
        if self._closed is not None:
            return
        self._closed = code, reason
        if drop:
            self._messages.clear()
            self._bytes = 0
        self._notify()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise WireClosed(*self._closed)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class _MemoryWire(Wire):
    def __init__(self, outgoing: _Direction, incoming: _Direction) -> None:
        self._outgoing = outgoing
        self._incoming = incoming

    async def receive(self) -> bytes:
        return await self._incoming.get()

    async def send(self, *messages: bytes) -> None:
        for message in messages:
            await self._outgoing.put(message)

    def abort(self) -> None:
        self._outgoing.close(1006, "", drop=True)
        self._incoming.close(1006, "", drop=True)

    async def close(self, code: int, reason: str) -> None:
        self._outgoing.close(code, reason, drop=False)
        self._incoming.close(code, reason, drop=True)
        await trio.lowlevel.checkpoint()
