"""Takes secrets out of text on its way to a log: those that are known, and what looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from vaala.models.secret import Secret, scrub
from vaala.telemetry.limits import SECRETS_KNOWN_MAX

_MARK = "***"
_NAMED = re.compile(
    r"""(?P<head>(?:api[-_]?key|token|secret|passw(?:or)?d|authorization|ticket)
        (?:["']\s*,\s*b?["'] | ["']?\s*[:=]\s*(?:b?["'])?))
        (?:(?:Bearer|Basic|Digest|Negotiate)\s+)?
        [^\s"'&,;<>(){}\[\]]+""",
    re.IGNORECASE | re.VERBOSE,
)
"""A value behind its name: in a URL, a header, a mapping in Python or JSON, a list of pairs.

Nothing here looks back over what stands before the name: on a long word that is quadratic.
"""
_COOKIE = re.compile(r"""(\b(?:set-)?cookie["']?\s*(?:[:=]|,)\s*(?:b?["'])?)[^"'\r\n]+""", re.I)
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=:-]{6,}", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/\s@\"']+(?=@)")


_VARIABLES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_HEADERS")
"""How the names of variables end that hold secrets; those of OTLP headers are among them."""


def secrets_of(environ: Mapping[str, str]) -> frozenset[Secret]:
    """Return what of an environment is a secret, by the names of its variables."""
    return frozenset(
        Secret(value) for name, value in environ.items() if name.endswith(_VARIABLES) and value
    )


class Redactor:
    """Knows the secrets of a program. May be asked from any thread."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._given = frozenset(secrets)
        self._known: tuple[Secret, ...] = ()
        self._learned: tuple[Secret, ...] = ()

    def know(self, secrets: Iterable[Secret]) -> None:
        """Take out these of the program's own as well, and for good: an old key may still work.

        When there are more than `SECRETS_KNOWN_MAX` the oldest are forgotten.
        """
        self._known = _newest(self._known, secrets)

    def learn(self, secrets: Iterable[Secret]) -> None:
        """Like `know`, for those of others: however many these are, the own ones stay known."""
        self._learned = _newest(self._learned, secrets)

    def redact(self, text: str) -> str:
        """Return ``text`` with stars in place of secrets."""
        text = scrub(text, (*self._given, *self._known, *self._learned))
        text = _COOKIE.sub(rf"\1{_MARK}", text)
        text = _NAMED.sub(rf"\g<head>{_MARK}", text)
        text = _SCHEME.sub(rf"\1 {_MARK}", text)
        return _USER_IN_URL.sub(_MARK, text)


def _newest(before: tuple[Secret, ...], more: Iterable[Secret]) -> tuple[Secret, ...]:
    """Return both, each secret once; what came last stands last, and the first fall out."""
    newest = dict.fromkeys(more)
    older = (secret for secret in before if secret not in newest)
    return (*older, *newest)[-SECRETS_KNOWN_MAX:]
