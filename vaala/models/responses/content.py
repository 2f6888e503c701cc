"""What messages hold as text, and text as JSON that every server can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vaala.text import is_blank
from vaala_protocol.base import Malformed, decode, encode
from vaala_protocol.content import Content, FileContent, ImageContent, TextContent


def text_of(content: Sequence[Content]) -> str:
    """Return the blocks as one text; what is no text becomes a note."""
    return "\n\n".join(text for text in map(_block, content) if not is_blank(text))


def arguments_of(text: str) -> str:
    """Return the text of a JSON object: servers parse the arguments of past calls, and fail."""
    if not text.strip():
        return "{}"
    try:
        if isinstance(decode(text.encode()), dict):
            return text
    except (Malformed, UnicodeEncodeError):
        pass
    return to_json({"malformed_arguments": text}).decode()


def to_json(value: object) -> bytes:
    """Return JSON; lone surrogates, which no UTF-8 can hold, are replaced."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return encode(_whole_text(value))


def _block(block: Content) -> str:
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


def _whole_text(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole_text(key): _whole_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_text(item) for item in value]
    return value
