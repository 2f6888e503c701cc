"""What wire formats have in common: JSON that every reader takes, and what messages hold."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from vaala.text import is_blank, scrub
from vaala_protocol.base import Malformed, decode, encode
from vaala_protocol.content import Content, FileContent, ImageContent, TextContent

_HEX_ID = re.compile(r"[0-9a-f]{32}")


def json_bytes(value: object) -> bytes:
    """Return ``value`` as JSON without white space, and without lone surrogates."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return encode(_scrubbed(value))


def read_json(data: bytes) -> Any:
    """Return the value of JSON bytes, None when they are none.

    The second, slower reader takes what the first refuses and servers send: bytes that are no
    UTF-8, half of a surrogate pair, control characters in strings.
    """
    try:
        return decode(data)
    except Malformed:
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def call_id(ours: str) -> str:
    """Return the id of a call on the wire: legal for every server, at most 40 characters.

    The same for the same call in every request, and distinct for distinct calls.
    """
    digits = ours.replace("-", "")
    if not _HEX_ID.fullmatch(digits):
        digits = hashlib.sha256(ours.encode("utf-8", "replace")).hexdigest()[:32]
    return f"call_{digits}"


def arguments_of(text: str) -> str:
    """Return the text of a JSON object: servers parse the arguments of past calls, and fail."""
    if not text.strip():
        return "{}"
    try:
        if isinstance(decode(text.encode()), dict):
            return text
    except (Malformed, UnicodeEncodeError):
        pass
    return json_bytes({"malformed_arguments": text}).decode()


def text_of(content: Sequence[Content]) -> str:
    """Return the blocks as one text; what is no text becomes a note."""
    return "\n\n".join(text for text in map(shown, content) if not is_blank(text))


def shown(block: Content) -> str:
    """Return a block as text; an image or a file becomes a note."""
    match block:
        case TextContent():
            return block.text
        case ImageContent():
            return f"[an image, {block.media_type}, {block.size_bytes} bytes: not shown here]"
        case FileContent():
            return (
                f"[the file {block.name}, {block.media_type}, {block.size_bytes} bytes:"
                " not shown here]"
            )


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in value]
    return value
