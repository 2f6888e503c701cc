"""What the text of a query means: words that must all occur, the last one as a beginning.

Each word (what stands between spaces) holds as a phrase: its parts must follow each other, so
``node.js`` is "node" then "js". The same word is given as FTS5 phrase for the index and as
pattern on folded text; both match the same texts.
"""

from __future__ import annotations

import re

from msgspec import Struct

from vaala_storage.text.fold import fold
from vaala_storage.text.limits import QUERY_CHARS_MAX, QUERY_WORDS_MAX, TOKEN_CHARS_MAX
from vaala_storage.text.words import LETTER, pairs, runs

Run = tuple[str, bool]


class Word(Struct, frozen=True):
    phrase: str
    """For FTS5. It is made of letters and digits in quotes: no text of a user has syntax."""
    pattern: re.Pattern[str]
    """For folded text."""


def parse(text: str) -> tuple[Word, ...]:
    """Return the words of a query; none when it has no letter or digit."""
    found = [list(runs(fold(part))) for part in text[:QUERY_CHARS_MAX].split()]
    words = [word for word in found if word][:QUERY_WORDS_MAX]
    return tuple(
        Word(_phrase(word, last), re.compile(_pattern(word, last)))
        for word, last in ((word, word is words[-1]) for word in words)
    )


def _phrase(word: list[Run], last: bool) -> str:
    parts: list[str] = []
    for index, (run, dense) in enumerate(word):
        inner = index < len(word) - 1
        if not dense:
            parts.append(run[:TOKEN_CHARS_MAX])
        elif inner or len(run) == 1:
            # What follows is next to the run's last character, which is a token of its own.
            parts += [*pairs(run), run[-1]]
        else:
            parts += pairs(run)
    run, dense = word[-1]
    star = "*" if (len(run) == 1 if dense else last) else ""
    return f'"{" ".join(parts)}"{star}'


def _pattern(word: list[Run], last: bool) -> str:
    pattern = "" if word[0][1] else f"(?<!{LETTER})"
    for index, (run, dense) in enumerate(word):
        if index:
            # Only a change of script divides two runs without a character between them.
            pattern += r"[\W_]*" if dense != word[index - 1][1] else r"[\W_]+"
        if dense:
            pattern += re.escape(run)
            continue
        pattern += re.escape(run[:TOKEN_CHARS_MAX])
        if len(run) >= TOKEN_CHARS_MAX:
            pattern += f"{LETTER}*"
        elif index < len(word) - 1 or not last:
            pattern += f"(?!{LETTER})"
    return pattern
