"""What is kept of a command's output, whatever it writes.

In memory are the first and the last bytes; all of it, up to a cap, goes to a sink as it comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from vaala_executors.limits import CAPTURE_HEAD_BYTES, CAPTURE_SINK_BYTES_MAX, CAPTURE_TAIL_BYTES
from vaala_executors.text import clean

Sink = Callable[[bytes], Awaitable[None]]
"""Takes the next bytes of the output, such as a blob writer's ``write``."""

HEAD_SHARE = 0.4
"""Of a budget: errors and summaries stand at the end, so the tail gets more."""


class CutOutput(Struct, frozen=True):
    """Text for a model or a person. With nothing left out, all of it is ``head``.

    Bytes are those that the command wrote, not those of the text. ``bytes_total`` is
    ``bytes_head + bytes_omitted + bytes_tail``.
    """

    head: str
    tail: str
    bytes_total: int
    bytes_head: int
    bytes_tail: int
    bytes_omitted: int
    newlines_omitted: int
    bytes_in_sink: int
    note: str
    """Why the sink does not have all, or empty."""


class OutputCapture:
    """Takes pieces of output at a cost that does not depend on how much came before.

    Memory is ``head_bytes`` plus twice ``tail_bytes``. Not for several tasks at once.
    """

    def __init__(
        self,
        *,
        sink: Sink | None = None,
        sink_bytes_max: int = CAPTURE_SINK_BYTES_MAX,
        head_bytes: int = CAPTURE_HEAD_BYTES,
        tail_bytes: int = CAPTURE_TAIL_BYTES,
    ) -> None:
        self._sink = sink
        self._sink_bytes_max = sink_bytes_max
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._newlines = 0
        self._sunk = 0
        self._note = ""

    @property
    def bytes_total(self) -> int:
        return self._total

    @property
    def bytes_in_sink(self) -> int:
        """How much of the output, from its start, the sink has."""
        return self._sunk

    @property
    def note(self) -> str:
        """Why the sink does not have all, or empty."""
        return self._note

    async def add(self, data: bytes) -> None:
        """Take a piece. A sink that raises is not used again, and `note` says so.

        Cancel: the piece is counted and kept in memory; the sink may have it or not.
        """
        self._keep(data)
        if self._sink is None:
            return
        room = self._sink_bytes_max - self._sunk
        piece = data[:room]
        if len(piece) < len(data):
            self._note = f"only the first {self._sink_bytes_max} bytes were stored"
        sink = self._sink
        if len(piece) < len(data):
            self._sink = None
        if piece:
            await self._pour(sink, piece)

    async def _pour(self, sink: Sink, piece: bytes) -> None:
        try:
            await sink(piece)
        except Exception as error:  # whatever storage says, the command's result is still given
            self._sink = None
            self._note = f"only the first {self._sunk} bytes were stored: {error}"
        else:
            self._sunk += len(piece)

    def _keep(self, data: bytes) -> None:
        self._total += len(data)
        self._newlines += data.count(b"\n")
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if len(data) >= self._tail_bytes:
            self._tail[:] = data[-self._tail_bytes :]
            return
        self._tail += data
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    def since(self, offset: int) -> tuple[bytes, int]:
        """Return what is in memory from ``offset`` on, and the offset where that begins.

        It begins later than asked when the bytes between have left memory; the next call's
        offset is what was returned plus the length of the bytes.
        """
        if offset < len(self._head):
            if not self._gap():
                return bytes(self._head[offset:] + self._tail), offset
            return bytes(self._head[offset:]), offset
        begin = self._total - len(self._tail)
        offset = max(offset, begin)
        return bytes(self._tail[offset - begin :]), offset

    def cut(self, bytes_max: int) -> CutOutput:
        """Return clean text whose UTF-8 length is at most ``bytes_max``, cut at line borders.

        A line that alone is too long is cut inside. What is left out lies between head and tail.
        """
        gap = self._gap()
        source = bytes(self._head) if gap else bytes(self._head + self._tail)
        if not gap and len((text := clean(source)).encode()) <= bytes_max:
            return self._made(text, source, "", b"")
        lines = _lines(source)
        if gap and len(lines) > 1:
            del lines[-1]  # memory ended inside it
        head, head_text = _fit(lines, int(bytes_max * HEAD_SHARE), backwards=False)
        rest = _lines(bytes(self._tail) if gap else source[len(head) :])
        if gap and len(rest) > 1:
            del rest[0]  # memory begins inside it
        tail, tail_text = _fit(rest, bytes_max - len(head_text.encode()), backwards=True)
        return self._made(head_text, head, tail_text, tail)

    def _gap(self) -> bool:
        return self._total > len(self._head) + len(self._tail)

    def _made(self, head: str, head_bytes: bytes, tail: str, tail_bytes: bytes) -> CutOutput:
        shown = len(head_bytes) + len(tail_bytes)
        newlines = head_bytes.count(b"\n") + tail_bytes.count(b"\n")
        return CutOutput(
            head=head,
            tail=tail,
            bytes_total=self._total,
            bytes_head=len(head_bytes),
            bytes_tail=len(tail_bytes),
            bytes_omitted=self._total - shown,
            newlines_omitted=self._newlines - newlines,
            bytes_in_sink=self._sunk,
            note=self._note,
        )


def _lines(data: bytes) -> list[bytes]:
    """Return the lines with their newline bytes; only those end a line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _fit(lines: list[bytes], bytes_max: int, *, backwards: bool) -> tuple[bytes, str]:
    """Return as many lines as fit, from one end, as they came and as clean text."""
    taken: list[bytes] = []
    texts: list[str] = []
    room = bytes_max
    for line in reversed(lines) if backwards else lines:
        text = clean(line)
        room -= len(text.encode())
        if room < 0:
            break
        taken.append(line)
        texts.append(text)
    if not taken and lines:
        return _fit_inside(lines[-1] if backwards else lines[0], bytes_max, backwards=backwards)
    if backwards:
        taken.reverse()
        texts.reverse()
    return b"".join(taken), "".join(texts)


def _fit_inside(line: bytes, bytes_max: int, *, backwards: bool) -> tuple[bytes, str]:
    """Return a part of one line, from one end. Clean text may be longer than its bytes."""
    length = min(len(line), bytes_max)
    while length > 0:
        part = _whole_characters(line, length, backwards=backwards)
        text = clean(part)
        if len(text.encode()) <= bytes_max:
            return part, text
        length = length * 2 // 3
    return b"", ""


def _whole_characters(line: bytes, length: int, *, backwards: bool) -> bytes:
    """Return about ``length`` bytes of an end of a line, not cut inside a UTF-8 character."""
    at = len(line) - length if backwards else length
    for _ in range(3):
        if 0 < at < len(line) and line[at] & 0xC0 == 0x80:
            at += 1 if backwards else -1
    return line[at:] if backwards else line[:at]
