"""What every `LogStorage` must agree on, and those that keep entries one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from vaala_protocol import decode, encode
from vaala_storage.errors import TooLarge
from vaala_storage.limits import BATCH_BYTES_MAX, PAGE_BYTES_MAX
from vaala_storage.log import Entry, Page, Stored
from vaala_storage.names import check_name


def encode_entry(entry: Entry) -> bytes:
    """Return an entry as JSON; raises ``ValueError`` or ``TypeError`` for what JSON cannot hold."""
    return encode(entry if isinstance(entry, dict) else dict(entry))


def encode_entries(entries: Iterable[Entry]) -> list[bytes]:
    """Return entries as JSON, each as `encode_entry` does."""
    return [encode_entry(entry) for entry in entries]


def check_new(path: str, streams: Mapping[str, Sequence[Entry]]) -> None:
    """Raise ``ValueError`` for streams that `LogStorage.create` cannot make a path of."""
    if not streams:
        raise ValueError(f"{path}: a path is created with at least one stream")
    for name in streams:
        check_name(name)


def encode_new(path: str, streams: Mapping[str, Sequence[Entry]]) -> dict[str, list[bytes]]:
    """Return the streams of a new path as JSON; raises `TooLarge` for one entry, not for many."""
    check_new(path, streams)
    encoded = {name: encode_entries(entries) for name, entries in streams.items()}
    for name, entries in encoded.items():
        for entry in entries:
            check_batch(f"{path}/{name}", [entry])
    return encoded


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
