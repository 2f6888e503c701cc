"""Text that arrives in pieces, made whole where a piece ends inside a character."""

from __future__ import annotations

import re

_LONE = re.compile(r"[\ud800-\udfff]")
_HIGH_AT_END = re.compile(r"[\ud800-\udbff]\Z")


class TextChannel:
    """Joins the halves of a surrogate pair that came as escapes in two pieces.

    What it gives can be encoded: a half that stays alone becomes U+FFFD.
    """

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        if piece.isascii() and not self._half:
            return piece
        piece = self._half + piece
        self._half = ""
        if _LONE.search(piece) is None:
            return piece
        if _HIGH_AT_END.search(piece):
            self._half, piece = piece[-1], piece[:-1]
        # Through UTF-16, two halves become one character and a lone one is found.
        return piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def end(self) -> str:
        """Return what is left: U+FFFD for a half that nothing followed."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""
