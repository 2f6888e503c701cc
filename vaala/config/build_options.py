"""Options of models in the configuration: values that a request can carry, names that are free."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from vaala.config.check import problem
from vaala.config.document import Document
from vaala.config.errors import Problem
from vaala.models.options import option_fault

Way: TypeAlias = tuple[str | int, ...]


def option_problems(document: Document, way: Way, options: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the options that stand at ``way``."""
    expected = "expected text, a number, true, false, null, a list or a mapping, found"
    for place, what in _not_json(way, dict(options)):
        yield problem(document, place, f"{expected} {what}")
    for name, value in options.items():
        if (fault := option_fault(name, value)) is not None:
            yield problem(document, (*way, name), fault)


def _not_json(way: Way, value: object) -> Iterator[tuple[Way, str]]:
    """Yield the place of each value that no request can carry, and what it is."""
    match value:
        case dict():
            for key, one in cast("dict[object, object]", value).items():
                if isinstance(key, str):
                    yield from _not_json((*way, key), one)
                else:
                    yield way, f"the key {key!r}, which is no text"
        case list():
            for number, one in enumerate(cast("list[object]", value)):
                yield from _not_json((*way, number), one)
        case float() if not math.isfinite(value):
            yield way, f"the number {value}"
        case None | str() | int() | float():
            pass
        case _:
            yield way, f"{type(value).__name__} {value}"
