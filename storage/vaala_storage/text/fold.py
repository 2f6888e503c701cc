"""Folding: the form in which two texts are compared, without case, accents and width.

Folding works on one cluster (a character and its combining marks) at a time, so that a place in
the folded text can be traced back to the text as it was written.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache

from msgspec import Struct

from vaala_storage.text.limits import CLUSTER_MARKS_MAX, FIELD_CHARS_MAX

_ACCENTS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
# Voicing marks of kana and vowels and tails of Hangul tell words apart: joined, never dropped.
_JOINING = "\u3099\u309a\uff9e\uff9f\u1160-\u11ff"
_MARKS = _ACCENTS + _JOINING
# Characters that fold to themselves (ASCII but for its case) unless a mark follows.
_PLAIN = "\x00-\x7f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
_SOME_MARKS = f"[{_MARKS}]{{1,{CLUSTER_MARKS_MAX}}}"
_CLUSTER = f"[^{_PLAIN}](?:{_SOME_MARKS})?|[{_PLAIN}]{_SOME_MARKS}"
_ACCENT = re.compile(f"[{_ACCENTS}]+")


@cache
def _clusters() -> re.Pattern[str]:
    """Compiled at the first text that is not ASCII: it takes 3 ms, and many runs have none."""
    return re.compile(_CLUSTER, re.DOTALL)


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    if unicodedata.category(cluster[0]) == "Cf":  # soft hyphen, zero width space, bidi marks
        return _fold_cluster(cluster[1:]) if len(cluster) > 1 else ""
    text = unicodedata.normalize("NFKC", cluster).casefold()
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))


class Folded(Struct, frozen=True):
    """Folded text and where folding changed lengths: spans as (folded, original) borders."""

    text: str
    starts: Sequence[int]
    spans: Sequence[tuple[int, int, int]]
    """For each start in the folded text: its end there, and start and end in the original."""

    def original(self, position: int) -> int:
        """Return the place in the original text of a place in the folded one."""
        index = bisect_right(self.starts, position) - 1
        if index < 0:
            return position
        folded_end, start, end = self.spans[index]
        return start if position < folded_end else end + position - folded_end


def storable(text: str) -> str:
    """Return the part of ``text`` that is indexed, as something that has a UTF-8 form.

    Half a surrogate pair (text decoded with surrogateescape) has none and becomes "?".
    """
    return text[:FIELD_CHARS_MAX].encode("utf-8", "replace").decode()


def fold(text: str) -> str:
    """Return ``text`` as it is compared."""
    if text.isascii():
        return text.lower()
    return _clusters().sub(lambda match: _fold_cluster(match[0]), text).lower()


def fold_traced(text: str) -> Folded:
    """Fold ``text`` so that places can be traced back."""
    if text.isascii():
        return Folded(text.lower(), (), ())
    starts: list[int] = []
    spans: list[tuple[int, int, int]] = []
    shift = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal shift
        folded = _fold_cluster(match[0])
        if len(folded) != len(match[0]):
            start = match.start() + shift
            starts.append(start)
            spans.append((start + len(folded), match.start(), match.end()))
            shift += len(folded) - len(match[0])
        return folded

    # lower() only touches ASCII here and keeps every length: the rest is case-folded already.
    return Folded(_clusters().sub(replace, text).lower(), starts, spans)
