"""Words: how folded text is cut into the tokens of an index.

A word is a run of letters and digits. Scripts written without spaces (Chinese, Japanese, Korean,
Thai and the like) are indexed as overlapping pairs, "ABC" as AB, BC and C: a longer query is a
row of pairs, a single character is the beginning of one, so both are plain index look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from vaala_storage.text.limits import TOKEN_CHARS_MAX

DENSE = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3041-\u3096\u3099-\u309a\u309d-\u309f"  # Japanese, Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3105-\u312f\u31a0-\u31bf"  # Katakana, Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"  # Han, Hangul
)
"""The inside of a character class: scripts written without spaces between words."""

LETTER = rf"[^\W_{DENSE}]"
"""A letter or digit of a script that has spaces."""

_ASCII_RUN = re.compile("[0-9A-Za-z]+")


@cache
def _run() -> re.Pattern[str]:
    """Compiled at the first text that is not ASCII: it takes 3 ms, and many runs have none."""
    return re.compile(rf"(?P<dense>[{DENSE}]+)|{LETTER}+")


def runs(folded: str) -> Iterator[tuple[str, bool]]:
    """Yield the runs of folded text and whether each is of a script without spaces."""
    if folded.isascii():
        yield from ((match[0], False) for match in _ASCII_RUN.finditer(folded))
    else:
        yield from ((match[0], match["dense"] is not None) for match in _run().finditer(folded))


def pairs(run: str) -> Iterator[str]:
    """Yield each two neighbours of a run."""
    for index in range(len(run) - 1):
        yield run[index : index + 2]


def tokens(folded: str) -> Iterator[str]:
    """Yield the tokens that folded text is indexed by, in order."""
    for run, dense in runs(folded):
        if dense:
            yield from pairs(run)
            yield run[-1]
        else:
            yield run[:TOKEN_CHARS_MAX]
