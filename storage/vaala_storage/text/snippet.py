"""Where a document matches, and the text around it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from msgspec import Struct

from vaala_storage.text.fold import fold_traced
from vaala_storage.text.limits import SNIPPET_CHARS_MAX, SNIPPET_LEAD_CHARS
from vaala_storage.text.query import Word

WORD_CUT_CHARS_MAX = 20
"""A longer rest of a word is shown: in some scripts no space comes for long."""
_ZERO_WIDTH_JOINER = "\u200d"


class Match(Struct, frozen=True):
    field: str
    snippet: str


def best_match(words: Sequence[Word], fields: Mapping[str, str]) -> Match:
    """Return the first of the fields with the most words, and the text around the first of them.

    Where no word is found (an index that an older Unicode folded) it is the first field's start.
    """
    best, field, place = 0, next(iter(fields), ""), 0
    for name, text in fields.items():
        folded = fold_traced(text)
        places = [
            match.start()
            for match in (word.pattern.search(folded.text) for word in words)
            if match is not None
        ]
        if len(places) > best:
            best, field, place = len(places), name, folded.original(min(places))
    return Match(field, snippet(fields.get(field, ""), place))


def snippet(text: str, place: int) -> str:
    """Return up to 160 characters of ``text`` around ``place``, cut where a reader would."""
    start = max(0, min(place - SNIPPET_LEAD_CHARS, len(text) - SNIPPET_CHARS_MAX))
    end = min(len(text), start + SNIPPET_CHARS_MAX)
    while start < place and not _is_border(text, start):
        start += 1
    while end > place and not _is_border(text, end):
        end -= 1
    if start > 0 and not text[start - 1].isspace():
        # Begin with a whole word, where one begins before the match.
        start = text.find(" ", start, min(place, start + WORD_CUT_CHARS_MAX)) + 1 or start
    return text[start:end]


def _is_border(text: str, index: int) -> bool:
    """Whether what a reader takes for one character ends before ``index``."""
    if index in (0, len(text)):
        return True
    following = text[index]
    if following.isascii():
        return True
    joins = unicodedata.category(following).startswith("M") or following == _ZERO_WIDTH_JOINER
    if joins or "\U0001f3fb" <= following <= "\U0001f3ff":  # skin tones follow what they colour
        return False
    if text[index - 1] == _ZERO_WIDTH_JOINER:
        return False
    return not (_is_flag_letter(following) and _flag_letters_before(text, index) % 2)


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, index: int) -> int:
    count = 0
    while count < min(index, SNIPPET_CHARS_MAX) and _is_flag_letter(text[index - count - 1]):
        count += 1
    return count
