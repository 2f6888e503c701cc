"""How well a document matches, from itself alone.

FTS5's own bm25() also weighs how rare a word is. For that it walks every match of every word at
each query (14 ms where this takes 4, and growing with the index), and it changes little: every
hit has every word.
"""

from __future__ import annotations

from typing import Final

import apsw

from vaala_storage.sqlite.rows import Parameter

FUNCTION: Final = "relevance"

# The usual constants of BM25: how soon repetition stops to count, how much length counts against.
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75
_USUAL_TOKENS: Final = 40
"""The length that neither helps nor harms: about that of a message."""


def register(connection: apsw.Connection) -> None:
    """Make ``relevance(words)`` known to a connection."""
    connection.register_fts5_function(FUNCTION, _relevance)


def _relevance(match: apsw.FTS5ExtensionApi, /, *_: Parameter) -> float:
    length = match.column_size(-1) / _USUAL_TOKENS
    norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
    score = 0.0
    for phrase in range(match.phrase_count):
        found = sum(len(places) for places in match.phrase_locations(phrase))
        score += found * (_SATURATION + 1) / (found + norm)
    return score
