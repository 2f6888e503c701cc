"""Results of the built-in tools: the text itself, and apart from it what is said about it.

Notes stand in a block of their own before the text, so that no text can be taken for a note.
"""

from __future__ import annotations

from vaala.tools.base import ToolResult
from vaala_protocol.calls import CallDetails
from vaala_protocol.content import TextContent


def noted(text: str, *notes: str, details: CallDetails | None = None) -> ToolResult:
    """Return a result of notes and a text; what is empty is left out."""
    blocks = [" ".join(note for note in notes if note), text]
    return ToolResult(tuple(TextContent(text=block) for block in blocks if block), details)
