"""What messages hold, as text that every server takes."""

from __future__ import annotations

from collections.abc import Sequence

from vaala.models.wire import json_bytes, shown
from vaala.text import is_blank
from vaala_protocol.base import Malformed, decode
from vaala_protocol.content import Content


def text_of(content: Sequence[Content]) -> str:
    """Return the blocks as one text; what is no text becomes a note."""
    return "\n\n".join(text for text in map(shown, content) if not is_blank(text))


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
