"""Line ends of a file, per line: texts are compared with LF, and written as the file has them."""

from __future__ import annotations

import re
from bisect import bisect_left

_CRLF = re.compile("\r\n")


def to_lf(text: str) -> str:
    """Return ``text`` with CRLF as LF. A lone CR, a form feed or U+2028 ends no line."""
    return text.replace("\r\n", "\n")


def all_crlf(text: str) -> bool:
    """Tell whether there are line ends, and all of them are CRLF."""
    return "\n" in text and text.count("\n") == text.count("\r\n")


class LfView:
    """A text with its CRLF seen as LF, and the way from a place in the view to the text."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = to_lf(original)
        self._crlf = [found.start() - count for count, found in enumerate(_CRLF.finditer(original))]
        """Places in the view of the line ends that are CRLF in the original, in order."""

    def place(self, index: int) -> int:
        """Return the place in the original; within a CRLF it is before both characters."""
        return index + bisect_left(self._crlf, index)

    def end_at(self, index: int) -> str:
        """Return the line end of the original that the view shows at ``index``."""
        at = bisect_left(self._crlf, index)
        return "\r\n" if at < len(self._crlf) and self._crlf[at] == index else "\n"

    def end_near(self, index: int) -> str:
        """Return the line end of the line at ``index``, or of the one before; LF with neither."""
        near = self.text.find("\n", index)
        if near < 0:
            near = self.text.rfind("\n", 0, index)
        return "\n" if near < 0 else self.end_at(near)
