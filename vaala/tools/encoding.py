"""The text in a file's bytes, and the same bytes back: an edit never passes a lossy decoding.

What has a byte order mark is decoded by it; else it is UTF-8, or bytes whose encoding is not known.
Those are shown as Latin-1, which maps each byte to one character and back, so that an edit leaves
every byte that it does not touch as it was.
"""

from __future__ import annotations

import codecs
from typing import Literal, TypeAlias

from msgspec import Struct

from vaala.tools import limits

Encoding: TypeAlias = Literal[
    "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"
]

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r\f\b\x1b")
"""What no text has, or next to none."""
_CONTROL_SHARE_MAX = 0.1


class Decoded(Struct, frozen=True):
    """Text without its byte order mark. ``encode(text)`` gives the bytes that it came from."""

    text: str
    encoding: Encoding = "utf-8"
    mark: bytes = b""

    @property
    def known(self) -> bool:
        """Whether the encoding is known, and new characters can be written in it."""
        return self.encoding != "latin-1"

    def encode(self, text: str) -> bytes:
        """Return ``text`` in the file's encoding; raises `UnicodeEncodeError` where it cannot."""
        return self.mark + text.encode(self.encoding)


class Binary(Struct, frozen=True):
    """Bytes that are no text; ``what`` says what they look like."""

    what: str


def decode(data: bytes) -> Decoded | Binary:
    """Return the text of a whole file."""
    mark, encoding = _mark_of(data)
    try:
        decoded = Decoded(data[len(mark) :].decode(encoding), encoding, mark)
    except UnicodeDecodeError:
        decoded = None
    if decoded is not None and decoded.encode(decoded.text) == data:
        if mark or not _looks_binary(data):
            return decoded
    elif b"\0" not in data[: limits.BINARY_SAMPLE_BYTES] and not _looks_binary(data):
        return Decoded(data.decode("latin-1"), "latin-1")
    return Binary(_name_of(data))


def encoding_of_head(head: bytes) -> Encoding | Binary:
    """Tell the encoding of a file from its first bytes, which may end inside a character."""
    mark, encoding = _mark_of(head)
    if mark:
        return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        if b"\0" in head or _looks_binary(head):
            return Binary(_name_of(head))
        return "latin-1"
    return Binary(_name_of(head)) if _looks_binary(head) else "utf-8"


def _mark_of(data: bytes) -> tuple[bytes, Encoding]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return mark, encoding
    return b"", "utf-8"


def _looks_binary(data: bytes) -> bool:
    sample = data[: limits.BINARY_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls > len(sample) * _CONTROL_SHARE_MAX


_NAMES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "an ELF program"),
    (b"SQLite format 3\0", "an SQLite database"),
)


def _name_of(data: bytes) -> str:
    known = next((name for magic, name in _NAMES if data.startswith(magic)), None)
    return known or f"binary data that begins with {data[:16].hex(' ')}"
