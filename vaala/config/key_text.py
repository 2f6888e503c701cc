"""The way to a value as people write it: ``team.windows."m-1.5"``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vaala.config.yaml_text import Way
from vaala_protocol.errors import BadRequest

_STEP = re.compile(r'(?:"([^"]*)"|([^".]+))(?:\.(?=.)|$)')


def parse_key(text: str, values: Any) -> Way:
    """Return the steps of a key. A number is the place in a list where ``values`` has one there.

    Raises `BadRequest` for what is no key.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise BadRequest(
                f"{text!r} is no key: write names with dots between, as in team.models"
            )
        quoted, plain = found.groups()
        step: str | int = quoted if quoted is not None else plain
        if isinstance(values, list) and plain is not None and plain.isdecimal():
            step = int(plain)
        steps.append(step)
        values = _below(values, step)
        at = found.end()
    return tuple(steps)


def key_text(way: Way) -> str:
    """Return a way as `parse_key` reads it."""
    return ".".join(f'"{step}"' if "." in str(step) else str(step) for step in way)


def _below(values: Any, step: str | int) -> Any:
    match values, step:
        case Mapping(), _:
            return values.get(step)
        case list(), int() if step < len(values):
            return values[step]
        case _:
            return None
