"""Names of tools on the wire, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from vaala.models.base import ToolSpec
from vaala.models.responses.limits import NAME_CHARS_MAX

_LEGAL = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARS_MAX}}}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8


def wire_name(name: str) -> str:
    """Return a legal name, the same for the same tool in every request.

    A name that is legal stays; of another the end says which one it was, so that no two become
    the same.
    """
    if _LEGAL.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{_ILLEGAL.sub('_', name)[: NAME_CHARS_MAX - _DIGITS - 1]}_{digest}"


def names_of(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Return the names of tools by what they are called on the wire."""
    return {wire_name(tool.name): tool.name for tool in tools}
