"""Lines of an open file in either direction, and the search for a sequence by bisection.

Nothing here holds more than one line and one block in memory, whatever the file contains: a run
of bytes without a line feed that is longer than any line of ours is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from vaala_storage.file.lines import BadLine, Batch, is_blank, parse_line
from vaala_storage.file.system import Files
from vaala_storage.limits import (
    BATCH_BYTES_MAX,
    BISECT_BYTES_MIN,
    READ_BLOCK_BYTES_MAX,
    READ_BLOCK_BYTES_MIN,
)


class Span(Struct, frozen=True):
    """The readable part of an open file: the bytes before ``end``."""

    files: Files
    handle: int
    end: int


class Line(Struct, frozen=True):
    """A whole line; ``content`` is without its line feed, None where it is too long to be ours."""

    start: int
    end: int
    content: bytes | None

    def batch(self) -> Batch | None:
        """Return the batch, None for a blank line; raises `BadLine`."""
        if self.content is None:
            raise BadLine("longer than any line may be")
        return None if is_blank(self.content) else parse_line(self.content)


def lines_forward(span: Span, start: int) -> Iterator[Line]:
    """Yield the whole lines from ``start`` on; a piece without a line feed at the end is left."""
    block_bytes = READ_BLOCK_BYTES_MIN
    offset = line_start = start
    pending, too_long = b"", False
    while offset < span.end:
        block = span.files.read(span.handle, offset, min(block_bytes, span.end - offset))
        if not block:
            return
        block_bytes = min(block_bytes * 2, READ_BLOCK_BYTES_MAX)
        *whole, rest = block.split(b"\n")
        for piece in whole:
            line_end = offset + len(piece) + 1
            yield Line(line_start, line_end, None if too_long else pending + piece)
            offset = line_start = line_end
            pending, too_long = b"", False
        offset += len(rest)
        if not too_long:
            pending += rest
            if len(pending) > BATCH_BYTES_MAX:
                pending, too_long = b"", True


def lines_backward(span: Span, end: int) -> Iterator[Line]:
    """Yield the whole lines that end at or before ``end``, last one first."""
    block_bytes = READ_BLOCK_BYTES_MIN
    pending, offset = b"", end
    line_end: int | None = None  # behind the line feed of the line being gathered
    too_long = False
    while offset > 0:
        size = min(block_bytes, offset)
        block = span.files.read(span.handle, offset - size, size)
        if len(block) < size:  # the file became shorter meanwhile
            pending, line_end, too_long = b"", None, False
            offset -= size
            continue
        block_bytes = min(block_bytes * 2, READ_BLOCK_BYTES_MAX)
        pieces = block.split(b"\n")
        position = offset
        for index in range(len(pieces) - 1, 0, -1):
            start = position - len(pieces[index])
            if line_end is not None:
                content = None if too_long else pieces[index] + pending
                yield Line(start, line_end, content)
            pending, line_end, too_long = b"", start, False
            position = start - 1
        offset -= size
        if line_end is not None and not too_long:
            pending = pieces[0] + pending
            if len(pending) > BATCH_BYTES_MAX:
                pending, too_long = b"", True
    if line_end is not None:
        yield Line(0, line_end, None if too_long else pending)


def line_before(span: Span, seq: int) -> int:
    """Return the start of a line at or shortly before the first batch that reaches ``seq``.

    Every batch before it ends below ``seq``. Costs one block or so for each halving.
    """
    low, high = 0, span.end
    while high - low > BISECT_BYTES_MIN:
        middle = (low + high) // 2
        found = _first_batch(span, middle, high)
        if found is None:
            high = middle
        elif found[1].last < seq:
            low = found[0].end
        else:
            high = middle
    return low


def _first_batch(span: Span, middle: int, high: int) -> tuple[Line, Batch] | None:
    """Return the first batch whose line starts at or after ``middle`` and before ``high``."""
    lines = lines_forward(span, middle - 1)
    next(lines, None)  # up to the line feed at or after middle - 1: the end of another line
    for line in lines:
        if line.start >= high:
            return None
        try:
            batch = line.batch()
        except BadLine:
            continue
        if batch is not None:
            return line, batch
    return None


def last_batch(span: Span) -> tuple[int, int] | None:
    """Return where the last readable batch ends, in bytes and as a sequence; None: there is none.

    A write that hung and was given up may land behind newer batches, so the batch before it is
    asked too.
    """
    found: tuple[int, int] | None = None
    for line in lines_backward(span, span.end):
        try:
            batch = line.batch()
        except BadLine:
            continue
        if batch is None:
            continue
        if found is not None:
            return found[0], max(found[1], batch.last)
        found = line.end, batch.last
    return found
