"""The format of a log file: one batch of entries is one line.

    {"seq":41,"n":2,"crc":2866485214,"e":[{...},{...}]}

``seq`` is the sequence of the first entry, ``n`` how many there are, ``crc`` the CRC-32C of the
bytes of the array. A torn line is thus a torn batch, and a bad one leaves a gap that the next
line's sequence tells. JSON never holds a raw line feed, so byte ``\\n`` ends a line and nothing
else does (U+2028 and the like are characters of a value).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import google_crc32c
from msgspec import Struct

from vaala_protocol.base import Malformed, decode
from vaala_storage.entry_rules import encode_entries, encode_entry
from vaala_storage.errors import TooLarge
from vaala_storage.limits import BATCH_BYTES_MAX
from vaala_storage.log import Entry

_HEAD = re.compile(rb'\{"seq":([1-9][0-9]{0,18}),"n":([1-9][0-9]{0,6}),"crc":([0-9]{1,10}),"e":')
_HEAD_BYTES_MAX = 64
"""``seq``, ``n`` and ``crc`` at their widest, the brackets and the line feed."""


class BadLine(ValueError):
    """A line that cannot be read; the text says why."""


class Batch(Struct, frozen=True):
    first: int
    count: int
    body: bytes
    """The array as it stands in the line, its checksum verified."""

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def entries(self) -> list[dict[str, Any]]:
        """Decode the entries; raises `BadLine`, which a verified checksum makes very unlikely."""
        try:
            found = decode(self.body)
        except Malformed as error:
            raise BadLine(str(error)) from error
        if not isinstance(found, list):
            raise BadLine("no list of entries")
        entries: list[Any] = found
        if len(entries) != self.count or not all(isinstance(entry, dict) for entry in entries):
            raise BadLine("the entries are not those that the line's head announces")
        return entries


def encode_body(entries: Sequence[Entry], label: str) -> bytes:
    """Return entries joined by commas; raises `TooLarge` when they do not fit into one line."""
    body = b",".join(encode_entries(entries))
    check_fits(len(body), label)
    return body


def fits(body_bytes: int) -> bool:
    return body_bytes + _HEAD_BYTES_MAX <= BATCH_BYTES_MAX


def check_fits(body_bytes: int, label: str) -> None:
    if not fits(body_bytes):
        raise TooLarge(
            f"{label}: {body_bytes} bytes of JSON in one append, at most "
            f"{BATCH_BYTES_MAX - _HEAD_BYTES_MAX}: store large values as blobs"
        )


def make_line(first: int, count: int, body: bytes) -> bytes:
    """Return the line for ``count`` entries that were joined by commas."""
    array = b"[%b]" % body
    head = b'{"seq":%d,"n":%d,"crc":%d,"e":' % (first, count, google_crc32c.value(array))
    return b"%b%b}\n" % (head, array)


def make_lines(entries: Sequence[Entry], label: str) -> bytes:
    """Return entries from sequence 1 in as many lines as they need; raises `TooLarge`."""
    lines: list[bytes] = []
    pieces: list[bytes] = []
    first, size = 1, 0
    for entry in entries:
        piece = encode_entry(entry)
        check_fits(len(piece), label)
        if pieces and not fits(size + 1 + len(piece)):
            lines.append(make_line(first, len(pieces), b",".join(pieces)))
            first, pieces, size = first + len(pieces), [], 0
        pieces.append(piece)
        size += len(piece) + 1
    if pieces:
        lines.append(make_line(first, len(pieces), b",".join(pieces)))
    return b"".join(lines)


def parse_line(line: bytes) -> Batch:
    """Read a line without its line feed; raises `BadLine`.

    Zero bytes in front are skipped: a power loss can leave a run of them (ext4), and the checksum
    tells whether a whole line follows.
    """
    line = line.lstrip(b"\0")
    head = _HEAD.match(line)
    if head is None or not line.endswith(b"]}"):
        raise BadLine(_why_not(line))
    body = line[head.end() : -1]
    if google_crc32c.value(body) != int(head[3]):
        raise BadLine("its checksum does not match")
    return Batch(int(head[1]), int(head[2]), body)


def is_blank(line: bytes) -> bool:
    return not line.strip(b"\r ")


def _why_not(line: bytes) -> str:
    return "zero bytes" if not line else f"not a batch: {line[:40]!r}"
