"""What was perhaps meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Sequence


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return the closest known word as a remark to add, or nothing when none is close."""
    import difflib  # here: it costs a millisecond, and most runs make no mistake

    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
