"""What the `LogStorage`s that keep entries one by one agree on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from vaala_protocol import decode, encode
from vaala_storage.errors import TooLarge
from vaala_storage.limits import BATCH_BYTES_MAX, PAGE_BYTES_MAX
from vaala_storage.log import Entry, Page, Stored


def encode_entries(entries: Iterable[Entry]) -> list[bytes]:
    """Return entries as JSON; raises ``ValueError`` or ``TypeError`` for what JSON cannot hold."""
    return [encode(entry if isinstance(entry, dict) else dict(entry)) for entry in entries]


def check_batch(label: str, entries: Sequence[bytes]) -> None:
    """Raise `TooLarge` for entries that no store takes in one append."""
    size = sum(map(len, entries))
    if size > BATCH_BYTES_MAX:
        raise TooLarge(
            f"{label}: {size} bytes of JSON in one append, at most {BATCH_BYTES_MAX}: "
            "store large values as blobs"
        )


class Ask(Struct, frozen=True):
    """Which entries: ``after < seq < before``, the first (or last) ``limit`` of them."""

    after: int
    before: int | None
    limit: int
    reverse: bool


def make_page(rows: Iterable[tuple[int, bytes]], limit: int) -> Page:
    """Gather rows in the order asked for up to ``limit``, or to the bytes of a page."""
    entries: list[Stored] = []
    size = 0
    for seq, data in rows:
        if len(entries) == limit or size >= PAGE_BYTES_MAX:
            return Page(tuple(entries), more=True)
        entries.append(Stored(seq, decode(data)))
        size += len(data)
    return Page(tuple(entries), more=False)
