"""One page of a stream: entries in order, gaps told, never stopped by damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from vaala_storage.entry_rules import Ask
from vaala_storage.file.lines import BadLine, Batch
from vaala_storage.file.scan import Line, Span, line_before, lines_backward, lines_forward
from vaala_storage.limits import PAGE_BYTES_MAX
from vaala_storage.log import Damage, Page, Stored


class _Bad(Struct, frozen=True):
    """Bad lines met since the last batch: what the first of them is, and how many they are."""

    first: str = "no line holds these entries"
    count: int = 0

    def __add__(self, later: _Bad) -> _Bad:
        return _Bad(self.first if self.count else later.first, self.count + later.count)

    def __str__(self) -> str:
        return self.first if self.count < 2 else f"{self.first} (and {self.count - 1} more lines)"


class _Gathered(Struct):
    """What a page has so far."""

    limit: int
    entries: list[Stored] = field(default_factory=list[Stored])
    damage: list[Damage] = field(default_factory=list[Damage])
    bad: _Bad = _Bad()
    bytes: int = 0

    def batch(self, line: Line) -> tuple[Batch, list[Stored]] | None:
        """Decode a line, or note why it cannot be."""
        try:
            batch = line.batch()
            if batch is None:
                return None
            entries = batch.entries()
        except BadLine as error:
            self.bad += _Bad(f"line at byte {line.start}: {error}", 1)
            return None
        return batch, [Stored(batch.first + index, entry) for index, entry in enumerate(entries)]

    def gap(self, first: int, last: int | None) -> None:
        """Note that entries are missing, or only that bad lines were there when none are."""
        if last is None or first <= last:
            self.damage.append(Damage(first, last, str(self.bad)))
        elif self.bad.count:
            self.damage.append(Damage(None, None, str(self.bad)))
        self.bad = _Bad()

    def take(self, entries: list[Stored], line: Line) -> bool:
        """Add entries; tell whether some of them, or more after them, are beyond the page."""
        room = self.limit - len(self.entries)
        self.entries.extend(entries[:room])
        self.bytes += line.end - line.start
        return len(entries) > room

    @property
    def full(self) -> bool:
        return len(self.entries) >= self.limit or self.bytes >= PAGE_BYTES_MAX

    def page(self, more: bool) -> Page:
        return Page(tuple(self.entries), more, tuple(self.damage))


def read_page(span: Span, ask: Ask) -> Page:
    """Read a page; costs the page and a search by bisection."""
    return _backward(span, ask) if ask.reverse else _forward(span, ask)


def _forward(span: Span, ask: Ask) -> Page:
    page = _Gathered(ask.limit)
    expected = ask.after + 1
    for line in lines_forward(span, line_before(span, expected)):
        found = page.batch(line)
        if found is None:
            continue
        batch, entries = found
        if batch.last < expected:  # before the page, or a second writer's repetition
            page.bad = _Bad()
            continue
        wanted = [
            stored
            for stored in entries
            if stored.seq >= expected and (ask.before is None or stored.seq < ask.before)
        ]
        if wanted and page.full:
            return page.page(more=True)
        top = batch.first if ask.before is None else min(batch.first, ask.before)
        page.gap(expected, top - 1)
        if page.take(wanted, line):
            return page.page(more=True)
        if ask.before is not None and batch.last + 1 >= ask.before:
            return page.page(more=False)
        expected = batch.last + 1
    if page.bad.count:
        page.gap(expected, None)
    return page.page(more=False)


def _backward(span: Span, ask: Ask) -> Page:
    page = _Gathered(ask.limit)
    above: int | None = None  # the sequence that follows the next entry, where it is known
    start = span.end
    if ask.before is not None:
        start, known = _start_of(span, ask.before)
        above = ask.before if known else None
    for line, batch, entries in _backward_batches(page, lines_backward(span, start)):
        if above is not None and batch.first >= above:  # a repetition
            continue
        wanted = [
            stored
            for stored in reversed(entries)
            if stored.seq > ask.after and (above is None or stored.seq < above)
        ]
        if wanted and page.full:
            return page.page(more=True)
        lowest = max(batch.last, ask.after) + 1
        if above is not None:
            page.gap(lowest, above - 1)
        elif page.bad.count:
            page.gap(lowest, None)
        if page.take(wanted, line):
            return page.page(more=True)
        above = batch.first
        if above <= ask.after + 1:
            return page.page(more=False)
    if above is not None or page.bad.count:
        page.gap(ask.after + 1, None if above is None else above - 1)
    return page.page(more=False)


def _backward_batches(
    page: _Gathered, lines: Iterable[Line]
) -> Iterator[tuple[Line, Batch, list[Stored]]]:
    """Yield the batches of lines that come in reverse, but none that the one before it covers.

    Read forward, the first line that holds a sequence counts; so it must here. With each batch
    ``page.bad`` is what was met between it and the newer one.
    """
    newer: tuple[Line, Batch, list[Stored]] | None = None
    bad_above = _Bad()  # between `newer` and what was yielded before it
    for line in lines:
        found = page.batch(line)
        if found is None:
            continue
        bad_between, page.bad = page.bad, bad_above
        if newer is not None and found[0].last < newer[1].last:
            yield newer
        newer, bad_above, page.bad = (line, *found), page.bad + bad_between, _Bad()
    bad_below, page.bad = page.bad, bad_above
    if newer is not None:
        yield newer
    page.bad += bad_below


def _start_of(span: Span, seq: int) -> tuple[int, bool]:
    """Return where the first batch at or after ``seq`` starts; False: the stream ends before."""
    end = line_before(span, seq)
    for line in lines_forward(span, end):
        try:
            batch = line.batch()
        except BadLine:
            batch = None
        if batch is not None:
            if batch.first >= seq:
                return line.start, True
            if batch.last >= seq:
                return line.end, True
        end = line.end
    return end, False
