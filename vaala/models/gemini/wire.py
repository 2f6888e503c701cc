"""JSON that every reader takes, written and read."""

from __future__ import annotations

import json
from typing import Any

from vaala.text import scrub
from vaala_protocol.base import Malformed, decode, encode


def json_bytes(value: object) -> bytes:
    """Return ``value`` as JSON without white space, lone surrogates and NUL."""
    try:
        data = encode(value)
    except UnicodeEncodeError:
        return encode(_scrubbed(value))
    return encode(_scrubbed(value)) if b"\\u0000" in data else data


def read_json(data: bytes) -> Any:
    """Return the value of JSON bytes, None when they are none.

    The second, slower reader takes what the first refuses and servers send: bytes that are no
    UTF-8, half of a surrogate pair, control characters in strings.
    """
    try:
        return decode(data)
    except Malformed:
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in value]
    return value
