"""Which values are secrets, and what stands in their place where values are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

Way: TypeAlias = tuple[str | int, ...]

MARK = "***"
_LOOKS_SECRET = re.compile(
    r"api[-_]?key|secret|passw|passphrase|credential|authorization|(?:^|[-_])token$",
    re.IGNORECASE,
)
"""Names of values in the free part of a file, the options of an agent."""
_PASSWORD_IN_URL = re.compile(r"(?<=://)[^/\s@]+(?=@)")


def is_secret(file: str, way: Sequence[str | int]) -> bool:
    """Tell whether the value at ``way`` in a file ("providers.yaml") must never be shown."""
    match file, tuple(way):
        case "secrets.yaml", (_, *_):
            return True
        case "providers.yaml", (_, "api_key" | "headers" | "query", *_):
            return True
        case "telemetry.yaml", ("headers", *_):
            return True
        case "agents.yaml", (_, "options", *rest):
            return any(_LOOKS_SECRET.search(str(name)) for name in rest)
        case _:
            return False


def conceal(file: str, way: Sequence[str | int], value: Any) -> Any:
    """Return ``value`` with `MARK` in place of each secret in it."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return {key: conceal(file, (*way, key), one) for key, one in entries.items()}
    if isinstance(value, list):
        return [conceal(file, (*way, place), one) for place, one in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    if is_secret(file, way):
        return MARK
    return _PASSWORD_IN_URL.sub(MARK, value) if isinstance(value, str) else value


def marked(file: str, way: Way, value: Any) -> Way | None:
    """Return where `MARK` stands for a secret in a value that is to be set at ``way``; None:
    nowhere. Whoever has read a value does not know its secrets, and would destroy them."""
    entries: Iterable[tuple[str | int, Any]]
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value).items()
    elif isinstance(value, list | tuple):
        entries = enumerate(cast("list[Any]", value))
    else:
        is_mark = isinstance(value, str) and (
            (value == MARK and is_secret(file, way)) or MARK in _PASSWORD_IN_URL.findall(value)
        )
        return way if is_mark else None
    found = (marked(file, (*way, step), one) for step, one in entries)
    return next((one for one in found if one is not None), None)


def holds_secret(file: str, values: Any) -> bool:
    """Tell whether there is a secret in a file, so that nobody else may read it."""
    return file == "secrets.yaml" or conceal(file, (), values) != values
