"""Content blocks: what a person, a model or a tool says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from vaala_protocol.base import Value


class TextContent(Value, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class ImageContent(Value, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image kept as a blob of its conversation."""

    blob: str
    media_type: str
    size_bytes: int


class FileContent(Value, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file that came with a message, kept as a blob of its conversation."""

    name: str
    blob: str
    media_type: str
    size_bytes: int


Content: TypeAlias = TextContent | ImageContent | FileContent


def text_of(content: Iterable[Content]) -> str:
    """Return the text blocks joined by newlines; other blocks are left out."""
    return "\n".join(block.text for block in content if isinstance(block, TextContent))
