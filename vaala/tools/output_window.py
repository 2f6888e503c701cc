"""`OutputWindow`: the newest bytes of an output, found by their place in the whole."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

_PIECE_BYTES = 4096
"""Small pieces are joined up to this: each costs more than it holds."""


class Piece(Struct, frozen=True):
    """Bytes of an output, and where in it they begin."""

    offset: int
    data: bytes


class OutputWindow:
    """Keeps the last ``bytes_max`` bytes, and at most a piece more.

    Adding costs what is added, whatever is kept.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: deque[bytearray] = deque()
        self._kept = 0
        self.total = 0
        """Bytes of output so far."""

    @property
    def start(self) -> int:
        """The place of the oldest byte that is kept."""
        return self.total - self._kept

    def add(self, data: bytes) -> None:
        if not data:
            return
        self.total += len(data)
        if len(data) >= self._bytes_max:
            self.clear()
            data = data[-self._bytes_max :]
        if self._pieces and len(self._pieces[-1]) + len(data) <= _PIECE_BYTES:
            self._pieces[-1] += data
        else:
            self._pieces.append(bytearray(data))
        self._kept += len(data)
        while self._kept - len(self._pieces[0]) >= self._bytes_max:
            self._kept -= len(self._pieces.popleft())

    def read(self, offset: int, length: int) -> Piece:
        """Return up to ``length`` bytes from a place on, or from the oldest that is kept."""
        offset = min(max(offset, self.start), self.total)
        at = self.start
        found = bytearray()
        for piece in self._pieces:
            if len(found) >= length:
                break
            if at + len(piece) > offset:
                first = max(0, offset - at)
                found += piece[first : first + length - len(found)]
            at += len(piece)
        return Piece(offset, bytes(found))

    def clear(self) -> None:
        """Give the memory back: the bytes are kept elsewhere."""
        self._pieces.clear()
        self._kept = 0
