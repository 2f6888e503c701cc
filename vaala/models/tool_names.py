"""Names of tools on the wire, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from vaala.models.base import ToolSpec

_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes; some take more."""
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_HEAD_CHARS = 55
_DIGEST_CHARS = 8


def wire_name(name: str) -> str:
    """Return a legal name, the same for the same tool in every request.

    A legal one stays. Of any other the end tells which it was, so that no two become the same.
    """
    if _LEGAL.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{_ILLEGAL.sub('_', name)[:_HEAD_CHARS]}_{digest}"


def names_of(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Return the names of tools by what they are called on the wire."""
    return {wire_name(tool.name): tool.name for tool in tools}
