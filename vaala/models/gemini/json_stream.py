"""A JSON answer cut into its elements while it comes.

Without ``alt=sse``, which some gateways drop, the server streams one array of responses; a
gateway may also answer with a single one. Both are a row of objects with brackets, commas and white
space between them.
"""

from __future__ import annotations

import re

from vaala.models.limits import SSE_EVENT_BYTES_MAX
from vaala.models.sse import EventTooLarge

_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')
"""What counts outside and inside of a text."""


class ElementDecoder:
    """Takes the bytes of a JSON document in pieces of any size and gives its outer objects.

    Each byte is looked at once. What is no JSON between two objects is skipped.
    """

    def __init__(self, element_bytes_max: int = SSE_EVENT_BYTES_MAX) -> None:
        self._limit = element_bytes_max
        self._rest = bytearray()
        self._at = 0
        """Where the next byte to look at is; beyond the end after a backslash."""
        self._in_text = False
        self._depth = 0

    @property
    def is_open(self) -> bool:
        """An object has begun and not ended."""
        return self._depth > 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the objects that ``piece`` completes; raises `EventTooLarge`."""
        self._rest += piece
        elements: list[bytes] = []
        begin = 0
        while found := (_INSIDE if self._in_text else _OUTSIDE).search(self._rest, self._at):
            at = found.start()
            self._at = at + 1
            match found.group():
                case b"\\":
                    self._at += 1
                case b'"':
                    self._in_text = not self._in_text
                case b"{" | b"[" as opening:
                    if self._depth or opening == b"{":
                        begin = begin if self._depth else at
                        self._depth += 1
                case _:
                    if self._depth == 1:
                        elements.append(bytes(self._rest[begin : at + 1]))
                        begin = at + 1
                    self._depth = max(0, self._depth - 1)
        self._drop(begin if self._depth else len(self._rest))
        if len(self._rest) > self._limit:
            raise EventTooLarge(f"an element of the answer is larger than {self._limit} bytes")
        return elements

    def _drop(self, count: int) -> None:
        """Forget what was given or belongs to no object; a backslash may be the last byte."""
        beyond = max(0, self._at - len(self._rest))
        del self._rest[:count]
        self._at = len(self._rest) + beyond
