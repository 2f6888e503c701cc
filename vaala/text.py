"""Text at our borders: what comes in can always be stored, sent and shown."""

from __future__ import annotations

import re

from vaala_protocol.base import encode

BLANK = "\u200b\u200c\u200d\u2060\ufeff"
"""Characters that show nothing but are no white space to Python (case A4-4)."""


_UNFINISHED = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
"""The begin of a character in UTF-8 (RFC 3629) at the end of a piece."""


def scrub(text: str) -> str:
    """Return ``text`` without what UTF-8 or JSON stores cannot hold: lone surrogates and NUL."""
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return clean.replace("\0", "\ufffd")


def is_blank(text: str) -> bool:
    """Tell whether a reader would see nothing."""
    return all(character.isspace() or character in BLANK for character in text)


def first_line(text: str, width: int = 80) -> str:
    """Return the first line that says something, cut to ``width`` characters."""
    for line in text.splitlines():
        if line := line.strip():
            return line if len(line) <= width else line[: width - 1] + "…"
    return ""


def cut(text: str, bytes_max: int) -> str:
    """Return ``text`` cut to its head and tail, with the exact number of bytes left out."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    half = max(0, (bytes_max - 64) // 2)
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - half :].decode("utf-8", "ignore")
    left_out = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}\n… {left_out} bytes left out …\n{tail}"


def json_bytes(text: str) -> int:
    """Return how many bytes ``text`` has as JSON, without the quotes; it must be scrubbed."""
    return len(encode(text)) - 2


def fitting(text: str, bytes_max: int) -> str:
    """Return ``text``, or a beginning of it, with at most ``bytes_max`` bytes as JSON.

    Escapes count as they are written: a control character has six bytes. Not always the longest
    beginning, where the density of escapes changes along the text.
    """
    text = text[: max(0, bytes_max)]
    while text and (size := json_bytes(text)) > bytes_max:
        text = text[: len(text) * bytes_max // size]
    return text


def whole_characters(data: bytes) -> bytes:
    """Return ``data`` without the begin of a character that stands at its end."""
    found = _UNFINISHED.search(data[-3:])
    return data if found is None else data[: len(data) - len(found.group())]
