"""Keys that cannot be shown by accident, and the scrubbing of text that came from outside."""

from __future__ import annotations

import re
from collections.abc import Iterable

_KEY_LIKE = re.compile(r"\b(?:sk|gsk|xai|pplx|AIza)[-_]?[A-Za-z0-9_*.\-]{12,}")
"""Providers quote a refused key in their error, in whole or with stars in it."""

_SCRUBBED_CHARS_MIN = 6
"""A shorter secret ("none", "x") is a placeholder; to hide it would tear words apart."""


class Secret:
    """A text that shows itself only when asked: not in repr, str, format or a traceback."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def scrub(text: str, secrets: Iterable[Secret] = ()) -> str:
    """Return ``text`` with the secrets, and whatever looks like a key, replaced by stars."""
    for secret in secrets:
        if len(secret.reveal()) >= _SCRUBBED_CHARS_MIN:
            text = text.replace(secret.reveal(), "***")
    return _KEY_LIKE.sub("***", text)
