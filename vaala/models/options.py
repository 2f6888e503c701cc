"""Options of models: fields of a request that whoever uses the model may set, by their names there.

One name means the same in every format: ``max_output_tokens``. All others are the provider's own.
An option with the value null is not sent: it takes away what was set further below. So does the
effort `AS_IT_IS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

AS_IT_IS = "default"
"""The effort of a model that is not told how hard to think."""
OUTPUT_TOKENS = "max_output_tokens"

_RESERVED = frozenset(
    (
        *("model", "messages", "input", "contents", "system", "systeminstruction"),
        *("instructions", "tools", "stream", "streamoptions", "n", "candidatecount", "background"),
        *("previousresponseid", "conversation", "cachedcontent"),
    )
)
"""Fields of requests that are ours, in one format or another, as `plain` names."""


class Defaults(Struct, frozen=True):
    """What a model is asked with where nobody says otherwise."""

    effort: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def over(self, base: Defaults) -> Defaults:
        """Return these with what they leave open taken from ``base``."""
        effort = base.effort if self.effort is None else self.effort
        return Defaults(effort, {**base.options, **self.options})


def plain(name: str) -> str:
    """Return a name as servers compare them that take both spellings, ``topP`` and ``top_p``."""
    return name.replace("_", "").lower()


def reserved(options: Iterable[str]) -> str | None:
    """Return an option that is ours to set, None when there is none."""
    return next((name for name in options if plain(name) in _RESERVED), None)


def option_fault(name: str, value: Any) -> str | None:
    """Return why an option can be sent to no model; None: it may be."""
    if reserved((name,)) is not None:
        return f"the option {name} is a part of the request that vaala makes itself: remove it"
    if name == OUTPUT_TOKENS and value is not None and not _is_count(value):
        return f"the option {name} is a whole number of tokens from 1 on, not {value!r}"
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
