"""Names of tools as this API takes them, and back.

A legal name stays as it is. Any other is made legal and ends in a digest of itself, so that two
names never become one, and the same name is the same in every request and in the history.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from vaala.models.gemini.limits import NAME_CHARACTERS_MAX

_LEGAL = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{NAME_CHARACTERS_MAX - 1}}}")
"""What all references agree on: it begins with a letter or an underscore
(cloud.google.com/vertex-ai/generative-ai/docs/reference, FunctionDeclaration.name)."""
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_CHARACTERS = 8

_NAMESPACES = ("default_api.", "default_api:")
"""What models put before the name of a function now and then; it is how the functions are shown to
them (github.com/block/goose/issues/5792 quotes the server)."""


def legal_name(name: str) -> str:
    if _LEGAL.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARACTERS]
    head = _ILLEGAL.sub("_", name)[: NAME_CHARACTERS_MAX - _DIGEST_CHARACTERS - 2]
    return f"_{head}_{digest}"


class ToolNames:
    """The names of the tools of one request."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._ours = {legal_name(name): name for name in names}

    def ours(self, said: str) -> str:
        """Return what we call the tool that a model called ``said``; unknown names stay."""
        if said in self._ours:
            return self._ours[said]
        for namespace in _NAMESPACES:
            bare = said.removeprefix(namespace)
            if bare != said and bare in self._ours:
                return self._ours[bare]
        return said
