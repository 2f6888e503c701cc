"""Values as YAML text, in the plainest form that says the same."""

from __future__ import annotations

import json
import re
from typing import Any

from ruamel.yaml import YAML

_PLAIN = re.compile(r"[A-Za-z_/.$][\w/.$@+=-]*(?:(?: |:(?=[\w/]))[\w/.$@+=-]+)*", re.ASCII)

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def flow(value: Any) -> str:
    """Return a value on one line."""
    match value:
        case str():
            return _text(value)
        case dict():
            shown = (f"{flow(key)}: {flow(one)}" for key, one in value.items())
            return "{" + ", ".join(shown) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(flow, value)) + "]"
        case _:
            return json.dumps(value)


def block(step: str | int, value: Any, indent: str) -> list[str]:
    """Return the lines of an entry; mappings go over several lines."""
    head = "-" if isinstance(step, int) else f"{flow(step)}:"
    if isinstance(value, dict) and value and isinstance(step, str):
        deeper = indent + "  "
        inner = (line for key, one in value.items() for line in block(key, one, deeper))
        return [f"{indent}{head}", *inner]
    return [f"{indent}{head} {flow(value)}"]


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and YAML(typ="safe").load(text) == text:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
